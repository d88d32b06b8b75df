// Finds the subgraphs that match a pattern. From a node that could be the pattern's first
// result, arguments are followed upwards in both, which takes no choice. Where a pattern has more results,
// the rest of it is reached downwards from a node that is matched already: each of its users is tried.
#include <algorithm>
#include <unordered_set>

#include "graph/node_index.h"
#include "weft/base/error.h"
#include "weft/graph/pattern.h"

namespace weft {

Node& Match::node(const Node& of_pattern) const {
  auto found = values.find(&of_pattern);
  require(found != values.end(), "there is no node '{}' in the pattern of this match", of_pattern.name());
  Node* node = node_in(found->second);
  require(node, "the pattern's placeholder '{}' stands for a constant here: {}", of_pattern.name(),
          found->second.to_string());
  return *node;
}

namespace {

bool is_placeholder(const Node& node) { return node.kind() == NodeKind::kPlaceholder; }

// --- the pattern -----------------------------------------------------------------------------------------

// A sound pattern, and the way through it.
class Plan {
 public:
  explicit Plan(const Graph& pattern) : pattern_(pattern) {
    read_results();
    add_steps();
  }

  const Graph& pattern() const { return pattern_; }
  const Node& first() const { return *first_; }
  // The nodes to go on with, each with one of its arguments matched by then, where the pattern hangs
  // together.
  const std::vector<const Node*>& steps() const { return steps_; }
  const std::vector<const Node*>& results() const { return results_; }
  bool is_result(const Node& node) const { return result_set_.contains(&node); }

 private:
  void read_results() {
    const Node* output = pattern_.output_node();
    require(output, "the pattern has no output: call output() with what it computes");
    for (const Node* result : output->inputs()) {
      require(!is_placeholder(*result),
              "the pattern returns its placeholder '{}'; it can only return what it computes",
              result->name());
      results_.push_back(result);
      result_set_.insert(result);
    }
    require(!results_.empty(), "the pattern returns no node: {}", output->line());
    for (const Node& node : pattern_)
      require(&node == output || !node.users().empty(),
              "the pattern's node '{}' is not needed for what it returns; erase it", node.name());
    // One that nothing else in the pattern uses: most is above it.
    auto first = std::find_if(results_.begin(), results_.end(),
                              [](const Node* node) { return node->users().size() == 1; });
    invariant(first != results_.end(), "every result of the pattern is an argument in it");
    first_ = *first;
  }

  // Marks what is above the node, and itself.
  void reach(const Node& node) {
    std::vector<const Node*> waiting{&node};
    while (!waiting.empty()) {
      const Node* next = waiting.back();
      waiting.pop_back();
      if (!reached_.insert(next).second) continue;
      (is_placeholder(*next) ? open_placeholders_ : open_).push_back(next);
      waiting.insert(waiting.end(), next->inputs().begin(), next->inputs().end());
    }
  }

  void add_steps() {
    reach(*first_);
    follow_users();
    for (const Node* result : results_) {
      if (reached_.contains(result)) continue;
      steps_.push_back(result);
      reach(*result);
      follow_users();
    }
  }

  void follow_users() {
    while (!open_.empty() || !open_placeholders_.empty()) {
      // Placeholders last: they may stand for values with very many users.
      std::vector<const Node*>& open = open_.empty() ? open_placeholders_ : open_;
      const Node* from = open.back();
      open.pop_back();
      for (const Node* to : from->users().list()) {
        if (to->kind() == NodeKind::kOutput || reached_.contains(to)) continue;
        steps_.push_back(to);
        reach(*to);
      }
    }
  }

  const Graph& pattern_;
  std::vector<const Node*> results_;
  std::unordered_set<const Node*> result_set_, reached_;
  const Node* first_ = nullptr;
  std::vector<const Node*> open_, open_placeholders_;  // reached, and their users not looked at
  std::vector<const Node*> steps_;
};

// --- arguments -------------------------------------------------------------------------------------------

bool same_keywords(const Kwargs& a, const Kwargs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

// The arguments of an operator's call in the order of the schema, with defaults; nothing if they do not fit.
std::optional<ValueList> all_arguments(const Node& node) {
  const Operator::Info& info = node.target().op()->info();
  const std::vector<Argument>& wanted = info.schema.arguments;
  ValueList values;
  size_t named = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool by_position = i < node.args().size() && !wanted[i].kwarg_only;
    if (const Value* value = node.kwarg(wanted[i].name)) {
      if (by_position) return std::nullopt;
      values.push_back(*value);
      ++named;
    } else {
      values.push_back(by_position ? node.args()[i] : info.defaults[i]);
    }
  }
  const bool all_used = named == node.kwargs().size() && node.args().size() <= wanted.size();
  return all_used ? std::optional(std::move(values)) : std::nullopt;
}

bool has_nodes(const Value& value) {
  bool any = false;
  for_each_node(value, [&](Node&) { any = true; });
  return any;
}

// --- the search ------------------------------------------------------------------------------------------

class Matcher {
 public:
  Matcher(const Graph& graph, const Plan& plan, const MatchOptions& options)
      : graph_(graph), plan_(plan), options_(options), index_(graph) {}

  std::vector<Match> run() {
    for (Node& node : graph_) {
      if (!could_be(plan_.first(), node)) continue;
      if (auto match = search(node)) {
        for (const auto& [taken, pattern_node] : taken_)
          if (!is_placeholder(*pattern_node)) used_.emplace(taken, matches_.size());
        last_used_ = std::max(last_used_, last_position());
        matches_.push_back(std::move(*match));
      }
      roll_back(0);
    }
    return std::move(matches_);
  }

 private:
  // A step with the nodes to try for it, and what was matched before it.
  struct Choice {
    size_t step;
    const std::vector<Node*>* candidates;
    size_t next;  // of them
    size_t trail;
  };

  bool could_be(const Node& pattern_node, const Node& node) const {
    if (pattern_node.kind() != node.kind() || used_.contains(&node)) return false;
    if (node.kind() == NodeKind::kGetAttr && options_.same_attribute)
      return options_.same_attribute(pattern_node, node);
    return pattern_node.target() == node.target();
  }

  std::optional<Match> search(Node& first) {
    if (!match_upwards(plan_.first(), first)) return std::nullopt;
    std::vector<Choice> choices;
    size_t step = 0;
    while (true) {
      if (step == plan_.steps().size()) {
        if (auto match = finished()) return match;
      } else {
        const Candidates& candidates = candidates_for(*plan_.steps()[step]);
        choices.push_back({step, &candidates.nodes, candidates.first, trail_.size()});
      }
      if (!next_choice(choices)) return std::nullopt;
      step = choices.back().step + 1;
    }
  }

  // Goes back to the last step that can be taken in another way, and takes it.
  bool next_choice(std::vector<Choice>& choices) {
    for (; !choices.empty(); choices.pop_back()) {
      Choice& choice = choices.back();
      while (choice.next < choice.candidates->size()) {
        roll_back(choice.trail);
        Node& candidate = *(*choice.candidates)[choice.next++];
        if (match_upwards(*plan_.steps()[choice.step], candidate)) return true;
      }
    }
    return false;
  }

  // Nodes that a step may lead to, in the order of the graph.
  struct Candidates {
    std::vector<Node*> nodes;
    size_t first = 0;  // that is in no match
  };

  // Among the users of a matched argument, of the one that has the fewest; in all of the graph where no
  // argument is matched with a node.
  const Candidates& candidates_for(const Node& pattern_node) {
    const Node* argument = nullptr;
    for (const Node* input : pattern_node.inputs()) {
      auto known = bound_.find(input);
      const Node* node = known == bound_.end() ? nullptr : node_in(known->second);
      if (node && (!argument || node->users().size() < argument->users().size())) argument = node;
    }
    auto [entry, is_new] = candidates_[&pattern_node].try_emplace(argument);
    Candidates& found = entry->second;
    if (is_new) {
      auto add = [&](Node& node) {
        if (could_be(pattern_node, node)) found.nodes.push_back(&node);
      };
      if (argument)
        for (Node* user : argument->users().list()) add(*user);
      else
        for (Node& node : graph_) add(node);
      std::sort(found.nodes.begin(), found.nodes.end(),
                [&](const Node* a, const Node* b) { return index_.of(*a) < index_.of(*b); });
    }
    while (found.first < found.nodes.size() && used_.contains(found.nodes[found.first])) ++found.first;
    return found;
  }

  // --- one way through ---

  bool match_upwards(const Node& pattern_node, Node& node) {
    pairs_.assign(1, {&pattern_node, &node});
    while (!pairs_.empty()) {
      const auto [wanted, found] = pairs_.back();
      pairs_.pop_back();
      if (!match_node(*wanted, *found)) return false;
    }
    return true;
  }

  bool match_node(const Node& pattern_node, Node& node) {
    if (auto known = bound_.find(&pattern_node); known != bound_.end())
      return node_in(known->second) == &node;
    if (taken_.contains(&node)) return false;
    if (!is_placeholder(pattern_node) && (!could_be(pattern_node, node) || leaks(pattern_node, node)))
      return false;
    bind(pattern_node, value_of(node));
    taken_.emplace(&node, &pattern_node);
    return is_placeholder(pattern_node) || match_arguments(pattern_node, node);
  }

  // Whether the node is used outside of the match, though the pattern does not return it: its users in the
  // match are those that the pattern's node has.
  bool leaks(const Node& pattern_node, const Node& node) const {
    return !plan_.is_result(pattern_node) && node.users().size() != pattern_node.users().size();
  }

  bool match_arguments(const Node& pattern_node, const Node& node) {
    if (pattern_node.args().size() == node.args().size() &&
        same_keywords(pattern_node.kwargs(), node.kwargs())) {
      if (!match_lists(pattern_node.args(), node.args())) return false;
      for (size_t i = 0; i < node.kwargs().size(); ++i)
        if (!match_value(pattern_node.kwargs()[i].second, node.kwargs()[i].second)) return false;
      return true;
    }
    if (!node.target().op()) return false;
    const auto wanted = all_arguments(pattern_node), found = all_arguments(node);
    return wanted && found && match_lists(*wanted, *found);
  }

  bool match_lists(const ValueList& wanted, const ValueList& found) {
    return std::equal(wanted.begin(), wanted.end(), found.begin(), found.end(),
                      [&](const Value& a, const Value& b) { return match_value(a, b); });
  }

  bool match_value(const Value& wanted, const Value& found) {
    if (Node* pattern_node = node_in(wanted)) {
      if (Node* node = node_in(found)) {
        pairs_.emplace_back(pattern_node, node);
        return true;
      }
      return is_placeholder(*pattern_node) && match_constant(*pattern_node, found);
    }
    if (wanted.is_sequence() && found.is_sequence()) return match_lists(wanted.elements(), found.elements());
    if (wanted.is_dict() && found.is_dict()) {
      const Dict &a = wanted.to_dict(), &b = found.to_dict();
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [&](const Dict::Entry& x, const Dict::Entry& y) {
                          return x.first == y.first && match_value(x.second, y.second);
                        });
    }
    return options_.ignore_literals ? !has_nodes(wanted) && !has_nodes(found) : wanted == found;
  }

  // A placeholder stands for what is no node.
  bool match_constant(const Node& placeholder, const Value& value) {
    if (auto known = bound_.find(&placeholder); known != bound_.end()) return known->second == value;
    bind(placeholder, value);
    return true;
  }

  void bind(const Node& pattern_node, Value value) {
    bound_.emplace(&pattern_node, std::move(value));
    trail_.push_back(&pattern_node);
  }

  void roll_back(size_t size) {
    for (; trail_.size() > size; trail_.pop_back()) {
      auto bound = bound_.find(trail_.back());
      if (const Node* node = node_in(bound->second)) taken_.erase(node);
      bound_.erase(bound);
    }
  }

  // --- whole matches ---

  std::optional<Match> finished() {
    if (is_fed_by_itself() || needs_itself()) return std::nullopt;
    Match match;
    match.values = bound_;
    for (const Node& node : plan_.pattern())
      if (is_placeholder(node)) match.inputs.push_back(bound_.at(&node));
    for (const Node* result : plan_.results()) match.outputs.emplace_back(node_in(bound_.at(result)));
    if (options_.accept && !options_.accept(match)) return std::nullopt;
    return match;
  }

  // Whether the node stands for one of the pattern that computes something.
  bool is_inside(const Node& node) const {
    auto found = taken_.find(&node);
    return found != taken_.end() && !is_placeholder(*found->second);
  }

  // A list that a placeholder stands for may have one of the match's own nodes in it.
  bool is_fed_by_itself() const {
    for (const Node* pattern_node : trail_) {
      if (!is_placeholder(*pattern_node)) continue;
      bool inside = false;
      for_each_node(bound_.at(pattern_node), [&](const Node& node) { inside |= is_inside(node); });
      if (inside) return true;
    }
    return false;
  }

  uint32_t last_position() const {
    uint32_t last = 0;
    for (const auto& [node, pattern_node] : taken_)
      if (!is_placeholder(*pattern_node)) last = std::max(last, index_.of(*node));
    return last;
  }

  // Whether a path leads from one of its results through other nodes back to it: then there is no point where
  // it could be computed in one go. The matches before it are computed so too: who needs one of their results
  // needs all that they need.
  bool needs_itself() const {
    if (plan_.results().size() == 1) return false;  // all of a match is above its result
    const uint32_t last = std::max(last_used_, last_position());
    std::vector<const Node*> waiting;
    std::unordered_set<const Node*> seen;
    std::unordered_set<size_t> seen_matches;
    auto add_users = [&](const Node& node) {
      for (const Node* user : node.users().list())
        if (index_.of(*user) <= last && seen.insert(user).second) waiting.push_back(user);
    };
    for (const Node* result : plan_.results()) {
      const Node& node = *node_in(bound_.at(result));
      for (const Node* user : node.users().list())
        if (!is_inside(*user) && seen.insert(user).second) waiting.push_back(user);
    }
    while (!waiting.empty()) {
      const Node* node = waiting.back();
      waiting.pop_back();
      if (is_inside(*node)) return true;
      add_users(*node);
      auto match = used_.find(node);
      if (match != used_.end() && seen_matches.insert(match->second).second)
        for (const Ref<Node>& output : matches_[match->second].outputs) add_users(*output);
    }
    return false;
  }

  const Graph& graph_;
  const Plan& plan_;
  const MatchOptions& options_;
  const NodeIndex index_;
  std::unordered_map<const Node*, Value> bound_;  // by the pattern's nodes
  std::unordered_map<const Node*, const Node*>
      taken_;                                         // the graph's nodes among them, and what they stand for
  std::vector<const Node*> trail_;                    // the pattern's nodes in the order they were bound
  std::vector<std::pair<const Node*, Node*>> pairs_;  // to be compared
  std::unordered_map<const Node*, size_t> used_;      // in matches
  // By the pattern's node and the graph's node that is its argument, or null.
  std::unordered_map<const Node*, std::unordered_map<const Node*, Candidates>> candidates_;
  std::vector<Match> matches_;
  uint32_t last_used_ = 0;  // the last position of a node in one of them
};

}  // namespace

std::vector<Match> find_matches(Graph& graph, const Graph& pattern, const MatchOptions& options) {
  const Plan plan(pattern);
  return Matcher(graph, plan, options).run();
}

}  // namespace weft
