#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/isa.h"
#include "weft/base/dtype.h"

namespace weft::scalar {
struct ScalarFunction;
}

// Pointwise operators on raw memory: any strides, any dtypes, no knowledge of tensors.
namespace weft::cpu {

// Applies an operator to `n` elements. `pointers`: outputs, then inputs, each contiguous and in the type the
// kernel computes in (masks as bytes). `params`: uniform parameters in the compute type, float for 16-bit
// floats, which compute in float and round once at the end. True if some element
// was refused (integer division by zero).
using Loop = bool (*)(int64_t n, char* const* pointers, const void* params);

struct LoopTable {
  Loop loops[kDTypeCount] = {};  // null: the operator does not exist for the type
};

enum class ResultKind : uint8_t {
  kSame,     // the compute type
  kBoolean,  // masks
  kReal,     // the real type of a complex compute type
};

// One operator: constant data.
struct PointwiseKernel {
  const char* name;
  int8_t inputs, outputs, params;
  ResultKind result;
  uint8_t mask_inputs;  // a bit for each input that is a mask
  const LoopTable* const loops[kIsaCount];
  scalar::ScalarFunction (*build)(DType compute);  // the formula, for the code generator

  bool supports(DType compute) const { return loops[0]->loops[static_cast<int>(compute)] != nullptr; }
  // The type of the results for a compute type.
  DType result_dtype(DType compute) const {
    if (result == ResultKind::kSame) return compute;
    if (result == ResultKind::kBoolean) return DType::kBool;
    if (!is_complex(compute)) return compute;
    return compute == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  }
};

// Memory of one operand: strides in elements, 0 for a broadcast dimension, any order, negative allowed.
struct Operand {
  char* data;
  DType dtype;
  const int64_t* strides;
};

// A uniform parameter; becomes a number of the compute type.
struct ParamValue {
  double re = 0, im = 0;
  int64_t integer = 0;  // used by integer compute types

  ParamValue(double value)  // NOLINT(google-explicit-constructor)
      : re(value), integer(to_integer(value)) {}
  ParamValue(int64_t value)  // NOLINT(google-explicit-constructor)
      : re(static_cast<double>(value)), integer(value) {}
  ParamValue(int value) : ParamValue(static_cast<int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  ParamValue(double re, double im) : re(re), im(im), integer(to_integer(re)) {}

 private:
  static int64_t to_integer(double value) {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
  }
};

inline constexpr int kMaxOperands = 8, kMaxParams = 4, kMaxRank = 64;

// Computes outputs = kernel(inputs; params) over `sizes`. `operands`: outputs, then inputs. Inputs are
// converted to `compute` (masks to bool), results from it. An output may be the same memory as an input,
// element for element; other overlap is the caller's error. UserError for an integer division by zero, when
// outputs hold unspecified values.
void run_pointwise(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                   std::span<const int64_t> sizes, std::span<const ParamValue> params = {});

// The same for operands that are arrays of `n` elements; their strides are not read. Inputs whose bit is set
// in `numbers` have one element, of any type, for all of them; only for n up to kFewElements. False, with
// nothing done, where some other operand is not of the type that the loop computes in.
inline constexpr int64_t kFewElements = 32;
bool run_contiguous(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                    int64_t n, std::span<const ParamValue> params = {}, uint32_t numbers = 0);

// dst = src, converted to dst's dtype. Both may have any strides.
void copy_strided(const Operand& dst, const Operand& src, std::span<const int64_t> sizes);
// Sets every element.
void fill_strided(const Operand& dst, std::span<const int64_t> sizes, const ParamValue& value);

}  // namespace weft::cpu
