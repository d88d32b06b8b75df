#include "ops/support/checks.h"

#include "weft/base/error.h"

namespace weft {

bool sizes_fit(SymIntSpan sizes, SymIntSpan expected) {
  bool fit = sizes.size() == expected.size();
  for (size_t d = 0; fit && d < expected.size(); ++d) fit = guard_or(sizes[d] == expected[d], true);
  return fit;
}

void check_sizes(const char* op, const char* name, const Tensor& tensor, SymIntSpan expected) {
  if (!sizes_fit(tensor.sizes(), expected))
    fail("{}: expected '{}' to have sizes {}, but got {}", op, name, describe_sizes(expected),
         describe(tensor));
}

void check_numel(const char* op, const char* name, const Tensor& tensor, const SymInt& expected) {
  if (!guard_or(tensor.numel() == expected, true))
    fail("{}: expected '{}' to have {} elements, but got {}", op, name, expected.to_string(),
         describe(tensor));
}

void check_dtype(const char* op, const char* name, const Tensor& tensor, DType expected) {
  if (tensor.dtype() != expected)
    fail("{}: expected scalar type {} but found {} for '{}'", op, dtype_name(expected),
         dtype_name(tensor.dtype()), name);
}

void check_expandable(const char* op, const char* name, const Tensor& tensor, SymIntSpan target) {
  SymIntSpan sizes = tensor.sizes();
  bool fits = sizes.size() <= target.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    const SymInt& wanted = target[target.size() - sizes.size() + d];
    fits = guard_or(sizes[d] == wanted, true) || guard_or(sizes[d] == 1, false);
  }
  if (!fits)
    fail("{}: expected '{}' to broadcast to sizes {}, but got {}", op, name, describe_sizes(target),
         describe(tensor));
}

void check_index_type(const char* op, const Tensor& index) {
  if (guard_or(index.numel() == 0, false)) return;
  require(index.dtype() == kInt64 || index.dtype() == kInt32,
          "{}(): Expected dtype int64 for index, but got {}", op, dtype_name(index.dtype()));
}

DType check_parameter_types(const char* op, const Tensor& input,
                            std::initializer_list<NamedTensor> parameters) {
  const NamedTensor* first = nullptr;
  for (const NamedTensor& parameter : parameters)
    if (!first && parameter.tensor.defined()) first = &parameter;
  if (!first) return input.dtype();
  bool mixed = first->tensor.dtype() != input.dtype();
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.defined()) continue;
    if (!mixed) check_dtype(op, name, tensor, input.dtype());
    else if (tensor.dtype() != kFloat32)
      fail("{}: mixed dtype (CPU): expect parameter to have scalar type of Float, but '{}' is {} beside {}",
           op, name, describe(tensor), describe(input));
  }
  if (!mixed) return input.dtype();
  bool narrow = input.dtype() == kFloat16 || input.dtype() == kBFloat16;
  if (!narrow)
    fail("{}: mixed dtype (CPU): all inputs must share same datatype, but '{}' is {} beside {}", op,
         first->name, describe(first->tensor), describe(input));
  return kFloat32;
}

}  // namespace weft
