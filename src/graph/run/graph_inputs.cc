#include "graph/run/graph_inputs.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

GraphInputs::GraphInputs(const Graph& graph) {
  for (const Node& node : graph) {
    if (node.kind() != NodeKind::kPlaceholder) continue;
    std::optional<Value> default_value;
    if (!node.args().empty()) default_value = node.args()[0];
    inputs_.push_back({node.target().to_string(), std::move(default_value)});
  }
  find_rest(true);
}

GraphInputs::GraphInputs(const std::vector<std::string>& names) {
  for (const std::string& name : names) inputs_.push_back({name, std::nullopt});
  find_rest(false);
}

void GraphInputs::find_rest(bool takes_positions) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name.starts_with("**")) names_ = i;
    else if (inputs_[i].name.starts_with("*") && takes_positions) positions_ = i;
  }
}

ValueList GraphInputs::bind(Args args, const Kwargs& kwargs) const {
  std::vector<std::optional<Value>> bound(inputs_.size());
  const size_t positional = positions_ ? std::min(args.size(), *positions_) : args.size();
  require(positional <= inputs_.size(), "the graph takes {} inputs but {} were given", inputs_.size(),
          args.size());
  for (size_t i = 0; i < positional; ++i) bound[i] = args[i];
  if (names_ && bound[*names_])
    require(bound[*names_]->is_dict(),
            "the graph takes {} inputs by position but {} were given; '{}' is a dictionary", *names_,
            args.size(), inputs_[*names_].name);
  if (positions_)
    bound[*positions_] = Value::tuple({args.begin() + static_cast<ptrdiff_t>(positional), args.end()});

  Dict others = names_ && bound[*names_] ? bound[*names_]->to_dict() : Dict();
  for (const auto& [name, value] : kwargs) {
    auto known =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.name == name; });
    if (known == inputs_.end()) {
      std::string all;
      for (const Input& input : inputs_) all += (all.empty() ? "" : ",") + input.name;
      require(names_.has_value(),
              "'{}' is not in forward() method's arguments,\nvalid arguments name are [{}]", name, all);
      require(!others.find(name), "forward: argument '{}' is given twice", name);
      others.set(name, value);
      continue;
    }
    std::optional<Value>& slot = bound[static_cast<size_t>(known - inputs_.begin())];
    require(!slot, "forward: argument '{}' is given twice", name);
    slot = value;
  }
  if (names_) bound[*names_] = others;

  ValueList all;
  all.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!bound[i]) bound[i] = inputs_[i].default_value;
    require(bound[i].has_value(), "forward: argument '{}' is missing", inputs_[i].name);
    all.push_back(std::move(*bound[i]));
  }
  return all;
}

}  // namespace weft
