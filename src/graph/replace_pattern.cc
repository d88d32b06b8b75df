// Puts copies of a graph where a pattern was found.
#include <algorithm>

#include "graph/node_index.h"
#include "weft/base/error.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/pattern.h"

namespace weft {
namespace {

size_t placeholder_count(const Graph& graph) { return graph.placeholders().size(); }

// What a replacement gives for each result of the pattern.
ValueList results_of(const Value& returned) {
  if (returned.is_sequence()) return returned.elements();
  return {returned};
}

void check_replacement(const Graph& replacement, size_t inputs, size_t results) {
  const Node* output = replacement.output_node();
  require(output && !output->args().empty(),
          "the replacement has no output: call output() with what it gives");
  require(placeholder_count(replacement) == inputs,
          "the pattern has {} placeholders and the replacement {}; they correspond by their order", inputs,
          placeholder_count(replacement));
  const size_t given = results_of(output->args()[0]).size();
  require(given == results, "the pattern returns {} nodes and the replacement {} values: {}", results, given,
          output->line());
}

void replace_uses(Node& node, const Value& value) {
  if (Node* other = node_in(value)) {
    node.replace_all_uses_with(*other);
    return;
  }
  auto change = [&](Node& input) { return &input == &node ? value : value_of(input); };
  for (Node* user : node.users().list()) {
    ValueList args;
    for (const Value& arg : user->args()) args.push_back(map_nodes(arg, change));
    Kwargs kwargs;
    for (const auto& [key, arg] : user->kwargs()) kwargs.emplace_back(key, map_nodes(arg, change));
    user->set_args(std::move(args));
    user->set_kwargs(std::move(kwargs));
  }
}

class Replacer {
 public:
  Replacer(Graph& graph, const Graph& pattern) : graph_(graph), pattern_(pattern), index_(graph) {}

  Replacement replace(Match match, const std::function<const Graph&(const Match&)>& replacement_for) {
    refresh_inputs(match);
    const Graph& replacement = replacement_for(match);
    check_replacement(replacement, match.inputs.size(), match.outputs.size());
    Node* before = insertion_point(match);
    Node* after = before ? before->previous() : graph_.back();
    ValueList results;
    {
      const Graph::InsertScope scope(graph_, before);
      results = results_of(graph_.inline_graph(replacement, match.inputs));
    }
    Replacement done{std::move(match), {}};
    for (Node* node = after ? after->next() : graph_.front(); node != before; node = node->next()) {
      done.added.emplace_back(node);
      new_positions_.emplace(node, position_);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      replace_uses(*done.match.outputs[i], results[i]);
      changed_.emplace(done.match.outputs[i].get(), results[i]);
    }
    for (const Node* node = pattern_.back(); node; node = node->previous())
      if (node->kind() != NodeKind::kPlaceholder && node->kind() != NodeKind::kOutput)
        graph_.erase(done.match.node(*node));
    return done;
  }

  // Puts nodes in order where the position of one match was not enough for that.
  void finish() {
    if (is_disordered_) graph_.legalize();
  }

 private:
  // The results of earlier replacements, where they fed this match.
  void refresh_inputs(Match& match) {
    size_t i = 0;
    for (const Node& node : pattern_) {
      if (node.kind() != NodeKind::kPlaceholder) continue;
      match.inputs[i] = current(match.inputs[i]);
      match.values[&node] = match.inputs[i++];
    }
  }

  Value current(const Value& value) const {
    return map_nodes(value, [&](Node& node) {
      Value now = value_of(node);
      for (auto found = changed_.find(&node); found != changed_.end();) {
        now = found->second;
        const Node* next = node_in(now);
        found = next ? changed_.find(next) : changed_.end();
      }
      return now;
    });
  }

  // Nodes as they were have the positions 0, 1, 2, ...; a new one has the position of the old one it was put
  // before.
  uint32_t position_of(const Node& node) const {
    auto added = new_positions_.find(&node);
    return added == new_positions_.end() ? index_.of(node) : added->second;
  }
  bool is_new(const Node& node) const { return new_positions_.contains(&node); }

  // Before the first user of a result; after the results if they have none. Null is the end.
  Node* insertion_point(const Match& match) {
    Node* first = nullptr;
    for (const Ref<Node>& output : match.outputs)
      for (Node* user : output->users().list()) {
        const bool is_before =
            !first || position_of(*user) < position_of(*first) ||
            (position_of(*user) == position_of(*first) && is_new(*user) && !is_new(*first));
        // Of two new ones at one position it is not known which comes first.
        if (first && first != user && is_new(*user) && is_new(*first) &&
            position_of(*user) == position_of(*first))
          is_disordered_ = true;
        if (is_before) first = user;
      }
    if (!first) return after_results(match);
    position_ = position_of(*first);
    for (const Value& input : match.inputs)
      for_each_node(input, [&](const Node& node) {
        const bool is_ready =
            is_new(node) && !is_new(*first) ? position_of(node) <= position_ : position_of(node) < position_;
        is_disordered_ |= !is_ready;
      });
    return first;
  }

  Node* after_results(const Match& match) {
    const Node* last = match.outputs[0].get();
    for (const Ref<Node>& output : match.outputs)
      if (index_.of(*output) > index_.of(*last)) last = output.get();
    position_ = index_.of(*last) + 1;
    return last->next();
  }

  Graph& graph_;
  const Graph& pattern_;
  const NodeIndex index_;  // of the graph as it was
  std::unordered_map<const Node*, uint32_t> new_positions_;
  std::unordered_map<const Node*, Value> changed_;  // results that were replaced, by what
  uint32_t position_ = 0;                           // of the last insertion
  bool is_disordered_ = false;
};

std::vector<Replacement> replace_all(Graph& graph, const Graph& pattern, const MatchOptions& options,
                                     const std::function<const Graph&(const Match&)>& replacement_for) {
  require(&graph != &pattern, "replace_pattern: the graph cannot be its own pattern; copy it");
  std::vector<Match> matches = find_matches(graph, pattern, options);
  Replacer replacer(graph, pattern);
  std::vector<Replacement> done;
  done.reserve(matches.size());
  for (Match& match : matches) done.push_back(replacer.replace(std::move(match), replacement_for));
  replacer.finish();
  return done;
}

}  // namespace

std::vector<Replacement> replace_pattern(Graph& graph, const Graph& pattern, const Graph& replacement,
                                         const MatchOptions& options) {
  if (const Node* output = pattern.output_node())
    check_replacement(replacement, placeholder_count(pattern), output->inputs().size());
  return replace_all(graph, pattern, options, [&](const Match&) -> const Graph& { return replacement; });
}

std::vector<Replacement> replace_pattern(Graph& graph, const Graph& pattern,
                                         const std::function<Graph(const Match&)>& make_replacement,
                                         const MatchOptions& options) {
  Graph made;
  return replace_all(graph, pattern, options, [&](const Match& match) -> const Graph& {
    made = make_replacement(match);
    return made;
  });
}

std::vector<Replacement> replace_pattern(const GraphModule& module, const Graph& pattern,
                                         const GraphModule& replacement, const MatchOptions& options) {
  for (const Node& node : replacement.graph()) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    const std::string path = node.target().to_string();
    require(module.try_find(path) || replacement.try_find(path),
            "replace_pattern: the replacement's {} '{}' names '{}', which neither the replacement nor the "
            "module has; give it to one of them (set_attribute)",
            kind_name(node.kind()), node.name(), path);
  }
  std::vector<Replacement> done = replace_pattern(module.graph(), pattern, replacement.graph(), options);
  module.copy_attributes(replacement);
  if (module.owns_attributes()) module.delete_unused_attributes();
  return done;
}

}  // namespace weft
