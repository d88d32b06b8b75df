#include "ops/out_call.h"

#include "ops/structured.h"
#include "ops/support/view_geometry.h"

namespace weft {
namespace {

bool has_argument(const Operator& op, std::string_view name) {
  return op.schema().argument_index(name).has_value();
}

// A type that the call names must be the target's; where it names none, that of the target counts.
OutType type_rule(const Operator& op, Args args) {
  const std::optional<size_t> at = op.schema().argument_index("dtype");
  const bool is_named = at && !args[*at].is_none();
  return op.def().kernel.out_type_is_exact || is_named ? OutType::kExact : OutType::kConverted;
}

// A result that is like another tensor is copied into a target that takes no part in how it is made: one that
// is resized for it becomes contiguous.
bool becomes_contiguous(const Operator& op) {
  const bool takes_type_from_target = has_argument(op.functional(), "dtype") && !has_argument(op, "dtype");
  return takes_type_from_target && !op.has(Traits::kFactory);
}

}  // namespace

void settle_out(const Operator& op, Args args, const Tensor& made, const Tensor& target) {
  require(target.defined(), "the out= tensor is undefined");
  if (!op.def().kernel.out_may_repeat) check_no_internal_overlap(target);
  TensorSpec spec{made.dtype(), made.device(), SymInts(made.sizes()),
                  becomes_contiguous(op) ? contiguous_strides(made.sizes()) : SymInts(made.strides())};
  if (const auto takes = op.def().kernel.takes_out_type)
    require(takes(args, spec.dtype, target.dtype()),
            "an out= tensor of type {} cannot take a result of type {}", dtype_name(target.dtype()),
            dtype_name(spec.dtype));
  else check_out_type(type_rule(op, args), spec, target);
  prepare_out(spec, target);
}

}  // namespace weft
