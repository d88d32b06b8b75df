#pragma once

#include "func/level.h"

namespace weft {

// Batching: a level whose wrappers hide a dim, and the rules of operators that see to it.
class VmapLevel final : public Level {
 public:
  VmapLevel(SymInt size, func::Randomness randomness) : size_(std::move(size)), randomness_(randomness) {}
  const char* name() const override { return "vmap"; }
  bool sees_everything() const override { return true; }  // random factories
  bool draws_for_batch() const override { return true; }

  Value handle(const Operator& op, Args args) override;
  const SymInt& size() const { return size_; }
  func::Randomness randomness() const { return randomness_; }

 private:
  Value call_unbatched(const Operator& op, Args args) {
    BelowLevel below(*this);
    return dispatch::redispatch(op, args);
  }
  Value handle_random(const Operator& op, Args args, bool has_batched);
  Value random_factory(const Operator& op, Args args);
  Value same_numbers(const Operator& op, Args args);
  Batched run_rule(const Operator& op, Args args);
  Value handle_inplace(const Operator& op, Args args);
  Value handle_writes(const Operator& op, Args args);
  Value handle_out(const Operator& op, Args args);
  Value wrap_batched(const Operator& op, Args args, const Batched& batched);

  SymInt size_;
  func::Randomness randomness_;
};

}  // namespace weft
