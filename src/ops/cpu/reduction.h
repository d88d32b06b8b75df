#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/pointwise.h"

namespace weft::scalar {
struct ReductionFormula;
}

// Reductions of raw memory over any set of dimensions.
namespace weft::cpu {

// The parts of a reduction for one compute type and instruction set. An accumulator block has `columns`
// accumulators of `bytes` each (component by component) behind a header; its layout belongs to the loops.
struct ReductionLoops {
  int bytes;
  DType outputs[2];  // the types that `finish` writes
  void (*init)(char* block, int64_t columns);
  // Adds n contiguous elements to accumulator `column`; `index` is the first element's.
  void (*row)(char* block, int64_t columns, int64_t column, const char* data, int64_t n, int64_t index);
  // Adds `rows` rows of `columns` contiguous elements, one element to each accumulator. Row stride in bytes.
  void (*rows)(char* block, int64_t columns, const char* data, int64_t rows, int64_t row_stride,
               int64_t index);
  // Adds the accumulators of another block, whose elements come later.
  void (*combine)(char* block, const char* other, int64_t columns);
  // Writes the results contiguously; `count`: elements per result; `param`: the correction of a variance.
  void (*finish)(const char* block, int64_t columns, int64_t count, double param, char* const* outputs);
  // Adds `runs` runs of n contiguous elements, `stride` bytes apart, to accumulators `column` and up, one run
  // to each: many short rows in one call. May be null, and takes n up to kLongestRun.
  void (*runs)(char* block, int64_t column, const char* data, int64_t runs, int64_t stride,
               int64_t n) = nullptr;
};
inline constexpr int64_t kLongestRun = 4096;
inline constexpr int kReductionHeader = 64;

struct ReductionTable {
  const ReductionLoops* loops[kDTypeCount] = {};
};

struct ReductionKernel {
  const char* name;
  int8_t outputs;
  bool ordered;  // results name positions: dimensions keep their order
  const ReductionTable* const tables[kIsaCount];
  scalar::ReductionFormula (*build)(DType compute);  // the formulas, for who generates code

  bool supports(DType compute) const { return tables[0]->loops[static_cast<int>(compute)] != nullptr; }
};

// Reduces `in` (converted to `compute`) over the dimensions whose bit is set in `reduced`. Output strides are
// given for every dimension; those of reduced ones are not read. f16, bf16 and f32 sums accumulate in f64;
// integer sums are for compute type i64. Positions (argmax) count in the logical order of the reduced
// dimensions. The same bits for any number of threads.
//
// No element to reduce gives the identity (sum 0, prod 1, mean and var NaN); amax and positions need one.
void run_reduction(const ReductionKernel& kernel, DType compute, const Operand& in,
                   std::span<const Operand> outputs, std::span<const int64_t> sizes, uint64_t reduced,
                   double param = 0);

extern const ReductionKernel kSum, kMean, kProd, kSumSquares;  // numbers; prod and sum also of i64
extern const ReductionKernel kAmax, kAmin;                     // all but complex
extern const ReductionKernel kAny, kAll;                       // compute type bool
extern const ReductionKernel kArgmax, kArgmin;                 // one i64 output
extern const ReductionKernel kMaxDim, kMinDim;                 // value and i64 position
extern const ReductionKernel kVar, kStd;                       // floats; param: correction
extern const ReductionKernel kVarMean, kStdMean;               // and the mean

}  // namespace weft::cpu
