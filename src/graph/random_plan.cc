#include "graph/random_plan.h"

#include <algorithm>

#include "weft/ops/fake.h"

namespace weft {

RandomPlan::RandomPlan(const Graph& graph) : advance_(graph.random_advance()) {
  if (advance_.same_as(0)) return;  // as most graphs: their nodes need not be looked at
  for (const Node& node : graph)
    if (const NodeMeta* meta = node.meta_or_null(); meta && meta->random_offset) {
      place_.emplace(&node, static_cast<uint32_t>(offsets_.size()));
      offsets_.push_back(*meta->random_offset);
    }
  if (offsets_.empty()) return;
  for (const Node* input : graph.placeholders()) {
    const NodeMeta* meta = input->meta_or_null();
    examples_.push_back(meta ? meta->value : Value());
  }
}

uint32_t RandomPlan::of(const Node& node) const {
  if (place_.empty()) return kNone;
  auto found = place_.find(&node);
  return found == place_.end() ? kNone : found->second;
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

std::optional<RandomPlan::Streams> RandomPlan::begin(Args inputs) const {
  // Where vmap is at work, a draw is for a whole batch.
  if (offsets_.empty() || FakeMode::current() || layer_state().level_depth > 0) return std::nullopt;
  sym::Bindings bindings;
  for (size_t i = 0; i < std::min(inputs.size(), examples_.size()); ++i)
    if (!fits(examples_[i], inputs[i], bindings)) return std::nullopt;
  std::optional<uint64_t> advance = number(advance_, bindings);
  if (!advance) return std::nullopt;
  Streams streams;
  streams.reserve(offsets_.size());
  for (const SymInt& offset : offsets_) {
    std::optional<uint64_t> at = number(offset, bindings);
    if (!at) return std::nullopt;
    streams.push_back({0, *at});
  }
  const RandomStream base = reserve_random(*advance);
  for (RandomStream& stream : streams) stream = {base.seed, base.offset + stream.offset};
  return streams;
}

}  // namespace weft
