#pragma once

#include <algorithm>

#include "func/functional_call.h"
#include "weft/base/error.h"

namespace weft {

// A call with functional tensors among its arguments: what they stand for, and which of them are ours.
class FunctionalArguments {
 protected:
  FunctionalArguments(const Position& position, const Operator& op, Args args)
      : position_(position), op_(op), args_(args) {}

  FunctionalBox* own(const Value& value) const {
    return value.is_tensor() ? position_.box_of(value.tensor_ref()) : nullptr;
  }

  void update(FunctionalBox& box) const {
    if (box.generation == box.memory->generation) return;
    BelowPosition below(position_);
    box.live_value();
  }
  void update_all(Args args) const {
    for (const Value& value : args) {
      if (FunctionalBox* box = own(value)) update(*box);
      else if (value.is_sequence()) update_all(Args(value.elements()));
    }
  }

  Value unwrapped(const Value& value) const {
    return map_tensors(value, [&](const Tensor& t) {
      FunctionalBox* box = position_.box_of(t);
      return Value(box ? box->value : t);
    });
  }
  std::vector<Value> unwrapped(Args args) const {
    std::vector<Value> inner;
    inner.reserve(args.size());
    for (const Value& value : args) inner.push_back(unwrapped(value));
    return inner;
  }

  // Whether all that `op` writes to is ours. A foreign tensor is written to below.
  bool owns_written(const Operator& op) const {
    for (size_t i = 0; i < args_.size(); ++i)
      if (op.info().written[i] && !all_own(args_[i])) return false;
    return true;
  }
  bool all_own(const Value& value) const {
    if (value.is_tensor()) return own(value) != nullptr;
    return !value.is_sequence() || std::all_of(value.elements().begin(), value.elements().end(),
                                               [&](const Value& element) { return all_own(element); });
  }
  bool any_own(Args args) const {
    return std::any_of(args.begin(), args.end(), [&](const Value& value) {
      return own(value) || (value.is_sequence() && any_own(Args(value.elements())));
    });
  }
  static bool any_tensor(Args args) {
    return std::any_of(args.begin(), args.end(), [](const Value& value) {
      return value.is_tensor() || (value.is_sequence() && any_tensor(Args(value.elements())));
    });
  }

  // Other operators may only ask for sizes and types, as `zeros_like` does.
  static bool reads_elements(const Operator& op) {
    return !op.has(Traits::kNotDifferentiable) ||
           op.has(Traits::kPointwise | Traits::kReduction | Traits::kDataDependent);
  }
  void refuse_emptied(Args args) const {
    for (const Value& value : args) {
      if (value.is_sequence()) refuse_emptied(Args(value.elements()));
      else if (const FunctionalBox* box = own(value))
        require(!box->memory->is_emptied(),
                "{}: {} has no elements to read or write: its storage has 0 bytes. Resize the storage first",
                op_.name(), describe(value.tensor_ref()));
    }
  }
  void refuse_frozen(Args args) const {
    for (const Value& value : args) {
      if (value.is_sequence()) refuse_frozen(Args(value.elements()));
      else if (const FunctionalBox* box = own(value))
        require(!box->memory->changes.frozen,
                "{}: cannot mutate tensors with frozen storage: {} must keep its value; write to a clone",
                op_.name(), describe(value.tensor_ref()));
    }
  }

  Value call_below(const Operator& op, Args inner) const {
    BelowPosition below(position_);
    return dispatch::redispatch(op, inner);
  }

  size_t first_written() const {
    const auto& written = op_.info().written;
    return static_cast<size_t>(std::find(written.begin(), written.end(), 1) - written.begin());
  }

  const Position& position_;
  const Operator& op_;
  Args args_;
};

}  // namespace weft
