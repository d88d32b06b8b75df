#include "graph/run/random_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "func/level.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"

namespace weft {

RandomPlan::RandomPlan(const Graph& graph) : advance_(graph.random_advance()) {
  for (const Node& node : graph)
    if (const NodeMeta* meta = node.meta_or_null(); meta && meta->random_offset) {
      const Operator* op = node.target().op();
      draw_index_.emplace(&node, static_cast<uint32_t>(entries_.size()));
      entries_.push_back({&node, *meta->random_offset, !(op && op->def().higher_order)});
    }
  if (entries_.empty()) return;
  for (const Node* input : graph.placeholders()) {
    const NodeMeta* meta = input->meta_or_null();
    examples_.push_back(meta ? meta->value : Value());
  }
}

uint32_t RandomPlan::of(const Node& node) const {
  if (draw_index_.empty()) return kNone;
  auto found = draw_index_.find(&node);
  return found == draw_index_.end() ? kNone : found->second;
}

namespace {

// Whether `value` is what the capture had here; what its symbols are now is noted. They are equal in all but
// the sizes that are nothing but a symbol.
bool fits(const SymInt& example, const SymInt& value, sym::Bindings& bindings) {
  if (value.is_symbolic()) return false;
  if (!example.is_symbolic()) return example.plain() == value.plain();
  bindings.emplace(example.expr(), value.plain());
  return true;
}

bool fits(const Value& example, const Value& value, sym::Bindings& bindings) {
  if (example.kind() == Value::Kind::kSymInt && value.is_int())
    return fits(example.to_sym_int(), value.to_sym_int(), bindings);
  if (example.is_sequence() && value.is_sequence()) {
    const ValueList &expected = example.elements(), &given = value.elements();
    return std::equal(expected.begin(), expected.end(), given.begin(), given.end(),
                      [&](const Value& a, const Value& b) { return fits(a, b, bindings); });
  }
  if (!example.is_tensor() || !value.is_tensor())
    return !value.is_tensor() && !value.is_sequence() && !value.is_dict() && !value.is_object();
  const Tensor &expected = example.tensor_ref(), &given = value.tensor_ref();
  if (is_fake(given) || expected.dim() != given.dim()) return false;
  for (int64_t d = 0; d < expected.dim(); ++d)
    if (!fits(expected.size(d), given.size(d), bindings)) return false;
  return true;
}

std::optional<uint64_t> number(const SymInt& value, const sym::Bindings& bindings) {
  if (!value.is_symbolic()) return static_cast<uint64_t>(value.plain());
  std::optional<sym::Number> found = value.env()->evaluate(value.expr(), bindings);
  if (!found || !std::holds_alternative<int64_t>(*found)) return std::nullopt;
  return static_cast<uint64_t>(std::get<int64_t>(*found));
}

}  // namespace

// The draws of a run that begins at 0.
std::optional<RandomPlan::Draws> RandomPlan::draws_for(Args inputs, bool are_given, SymInt& advance,
                                                       std::string* why) const {
  sym::Bindings bindings;
  for (size_t i = 0; i < std::min(inputs.size(), examples_.size()); ++i) {
    // Numbers that are given need not be for these inputs: of a backward graph they are the forward's.
    if (are_given && examples_[i].is_none()) continue;
    if (!fits(examples_[i], inputs[i], bindings)) {
      if (why) *why = fmt::format("input {} has other sizes than at the capture", i);
      return std::nullopt;
    }
  }
  Draws draws;
  draws.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    const std::optional<uint64_t> at = number(entry.offset, bindings);
    if (!at) {
      if (why)
        *why = fmt::format("the inputs do not tell the offset {} of '{}'", entry.offset.to_string(),
                           entry.node->name());
      return std::nullopt;
    }
    // In the default generator the numbers that follow may be another thread's by now.
    if (entry.has_known_end || are_given) draws.push_back(Draw{{0, *at}, entry.has_known_end});
    else draws.emplace_back();
  }
  const std::optional<uint64_t> total = number(advance_, bindings);
  if (!total) {
    if (why) *why = fmt::format("the inputs do not tell how many it draws, {}", advance_.to_string());
    return std::nullopt;
  }
  advance = static_cast<int64_t>(*total);
  return draws;
}

std::optional<RandomPlan::Draws> RandomPlan::begin(Args inputs, RunNumbers* numbers) const {
  // Without draws at fixed offsets everything comes in order.
  auto is_fixed = [](const Entry& entry) { return entry.has_known_end; };
  if (numbers && std::none_of(entries_.begin(), entries_.end(), is_fixed)) numbers->begin = next_random();
  if (entries_.empty()) return std::nullopt;
  const bool are_given = RandomScope::is_open();
  // Offsets that no numbers are reserved for are those of a stream that is given.
  if (!are_given && advance_.same_as(0)) return std::nullopt;
  // Where vmap is at work, a draw is for a whole batch. A fake mode that calls do not meet is none.
  const LayerState& state = layer_state();
  if ((state.active & state.mask & layer::kFake) || meets_batch()) return std::nullopt;
  const bool must = numbers && numbers->are_given;
  SymInt advance = 0;
  std::string why;
  std::optional<Draws> draws = draws_for(inputs, are_given, advance, must ? &why : nullptr);
  require(
      draws || !must,
      "the graph cannot be run on given random numbers: {}; give it inputs of those sizes, or note values of "
      "the same capture in its placeholders",
      why);
  if (!draws) return std::nullopt;
  const RandomStream base = reserve_random(static_cast<uint64_t>(advance.plain()));
  if (numbers) numbers->begin = base;
  for (std::optional<Draw>& draw : *draws)
    if (draw) draw->stream = {base.seed, base.offset + draw->stream.offset};
  return draws;
}

Value RandomPlan::run(const std::optional<Draw>& draw, FunctionRef<Value()> call) {
  if (!draw) return call();
  RandomStream end;
  Value result;
  {
    RandomScope numbers(draw->stream);
    result = call();
    end = next_random();
  }
  if (draw->has_known_end) return result;
  // What comes next comes after it.
  const RandomStream here = next_random();
  if (end.offset > here.offset) reserve_random(end.offset - here.offset);
  return result;
}

}  // namespace weft
