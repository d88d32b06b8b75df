#include "capture/random_numbers.h"

#include <algorithm>

#include "weft/ops/fake.h"

namespace weft {
namespace {

bool draws_from_default(const Operator& op, Args args) {
  if (!op.has(Traits::kRandom)) return false;
  return std::none_of(args.begin(), args.end(),
                      [](const Value& arg) { return arg.kind() == Value::Kind::kGenerator; });
}

SymInt numbers_of(const Operator& op, Args args, const Value& result) {
  if (auto* draws = op.def().draws) return draws(args);
  const Value& first = result.is_sequence() ? result.elements().front() : result;
  return first.to_tensor().numel();
}

}  // namespace

std::optional<SymInt> RandomNumbers::before(const Operator& op, Args args) {
  if (!draws_from_default(op, args)) return std::nullopt;
  drew_ = true;
  return here();
}

std::optional<SymInt> RandomNumbers::here() {
  if (!is_known_) return std::nullopt;
  if (FakeMode::current()) return advance_;
  const RandomStream here = next_random();
  // Somebody else drew, or set the generator, since the last call: no offset tells what a run of the graph
  // will find.
  const bool is_expected =
      here.seed == start_.seed && here.offset - start_.offset == static_cast<uint64_t>(advance_.plain());
  if (is_expected) return advance_;
  is_known_ = false;
  return std::nullopt;
}

void RandomNumbers::after(const Operator& op, Args args, const Value& result,
                          const std::optional<SymInt>& offset, Node& node) {
  if (!offset) return;
  node.meta().random_offset = offset;
  if (FakeMode::current()) advance_ = advance_ + numbers_of(op, args, result);
  else advance_ = static_cast<int64_t>(next_random().offset - start_.offset);
}

}  // namespace weft
