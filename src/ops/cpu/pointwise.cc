#include "ops/cpu/pointwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "ops/cpu/block_loop.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/loop_nest.h"
#include "ops/cpu/stream_copy.h"
#include "ops/cpu/thread_elements.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

int64_t write_param(char* to, const ParamValue& value, DType type) {
  if (type == DType::kBool) {
    *to = value.re != 0 || value.im != 0 || value.integer != 0;
  } else if (is_integral(type)) {
    std::memcpy(to, &value.integer, item_size(type));  // low bits first
  } else {
    const double parts[] = {value.re, value.im};
    char* pointers[] = {to, reinterpret_cast<char*>(const_cast<double*>(parts))};
    converter(type, is_complex(type) ? DType::kComplex128 : DType::kFloat64)(1, pointers, nullptr);
  }
  return item_size(type);
}

namespace {

// Parameters as the loops read them.
struct ParamBuffer {
  alignas(16) char bytes[kMaxParams * 16];

  ParamBuffer(std::span<const ParamValue> params, DType type) {
    if (!params.empty()) fill(params, type);
  }

  [[gnu::noinline]] void fill(std::span<const ParamValue> params, DType type) {
    char* p = bytes;
    for (const ParamValue& value : params) p += write_param(p, value, type);
  }
};

// The number of elements if every operand's strides are those of a fresh array, else -1.
inline int64_t contiguous_count(std::span<const Operand> operands, std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (size_t d = sizes.size(); d-- > 0; n *= sizes[d]) {
    if (sizes[d] == 1) continue;
    for (const Operand& operand : operands)
      if (operand.strides[d] != n) return -1;
  }
  return n;
}

DType loop_dtype(const PointwiseKernel& kernel, DType compute, int k) {
  if (k < kernel.outputs) return kernel.result_dtype(compute);
  return kernel.input_dtype(compute, k - kernel.outputs);
}

[[noreturn, gnu::cold, gnu::noinline]] void reject(const PointwiseKernel& kernel, DType compute,
                                                   size_t operands, size_t params) {
  if (!kernel.supports(compute))
    unsupported("{} is not implemented for {}", kernel.name, dtype_name(compute));
  invariant(false, "{} was called with {} operands and {} parameters", kernel.name, operands, params);
  __builtin_unreachable();
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse(const PointwiseKernel& kernel) {
  fail("ZeroDivisionError: {}: an integer was divided by zero", kernel.name);
}

// Whether the result is one large array that is not an input too.
bool is_streamed(const PointwiseKernel& kernel, std::span<const Operand> operands, int64_t n) {
  if (kernel.outputs != 1 || n * item_size(operands[0].dtype) < kStreamBytes) return false;
  for (const Operand& input : operands.subspan(1))
    if (input.data == operands[0].data) return false;
  return true;
}

// Runs the loop on a block whose result goes through a small buffer to memory, around the caches. Pieces are
// so short that the processor computes one while it waits for the writes of the one before, and what later
// ones read is asked for a page ahead.
bool run_streamed(int64_t n, char** data, std::span<const Operand> operands, Loop loop, const void* params) {
  constexpr int64_t kPiece = 128, kWidestItem = 16, kAhead = 4096;
  alignas(64) char buffer[kPiece * kWidestItem];
  char* target = std::exchange(data[0], buffer);
  const int64_t item = item_size(operands[0].dtype);
  // The first piece ends with a cache line, and so do the others: a line written by halves is written twice.
  const int64_t lead = (-reinterpret_cast<intptr_t>(target) & 63) / item;
  bool refused = false;
  for (int64_t begin = 0, count = lead > 0 ? lead : kPiece; begin < n; begin += count, count = kPiece) {
    count = std::min(count, n - begin);
    refused |= loop(count, data, params);
    for (size_t k = 1; k < operands.size(); ++k) {
      const int64_t bytes = count * item_size(operands[k].dtype);
      data[k] += bytes;
      prefetch(data[k] + kAhead, bytes);
    }
    stream_copy(target + begin * item, buffer, count * item);
  }
  finish_streams();
  return refused;
}

[[gnu::noinline]] bool run_in_parallel(int64_t n, char* const* data, std::span<const Operand> operands,
                                       Loop loop, const void* params, bool streamed) {
  std::atomic<bool> refused{false};
  parallel_for(0, n, kThreadElements, [&](int64_t begin, int64_t end) {
    char* local[kMaxOperands];
    for (size_t k = 0; k < operands.size(); ++k) local[k] = data[k] + begin * item_size(operands[k].dtype);
    bool refuses = streamed ? run_streamed(end - begin, local, operands, loop, params)
                            : loop(end - begin, local, params);
    if (refuses) refused.store(true, std::memory_order_relaxed);
  });
  return refused.load(std::memory_order_relaxed);
}

inline bool has_loop_dtypes(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands) {
  if (kernel.result == ResultKind::kSame && !kernel.mask_inputs) {
    for (const Operand& operand : operands)
      if (operand.dtype != compute) return false;
    return true;
  }
  for (size_t k = 0; k < operands.size(); ++k)
    if (operands[k].dtype != loop_dtype(kernel, compute, static_cast<int>(k))) return false;
  return true;
}

// Arrays of the loop's types: the loop runs on them as they are.
inline void run_arrays(const PointwiseKernel& kernel, std::span<const Operand> operands, int64_t n, Loop loop,
                       const void* params) {
  if (n == 0) return;
  char* data[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k) data[k] = operands[k].data;
  bool refused = n <= kThreadElements
                     ? loop(n, data, params)
                     : run_in_parallel(n, data, operands, loop, params, is_streamed(kernel, operands, n));
  if (refused) [[unlikely]]
    refuse(kernel);
}

inline bool try_contiguous(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                           std::span<const int64_t> sizes, Loop loop, const void* params) {
  if (!has_loop_dtypes(kernel, compute, operands)) return false;
  int64_t n = contiguous_count(operands, sizes);
  if (n < 0) return false;
  run_arrays(kernel, operands, n, loop, params);
  return true;
}

// The loop of the kernel; an error where there is none, or where the call does not fit it.
inline Loop loop_of(const PointwiseKernel& kernel, DType compute, size_t operands, size_t params) {
  Loop loop = active_table(kernel.loops).loops[static_cast<int>(compute)];
  if (!loop || operands != static_cast<size_t>(kernel.inputs + kernel.outputs) ||
      params != static_cast<size_t>(kernel.params)) [[unlikely]]
    reject(kernel, compute, operands, params);
  return loop;
}

[[gnu::noinline]] void run_general(const PointwiseKernel& kernel, DType compute,
                                   std::span<const Operand> operands, std::span<const int64_t> sizes,
                                   Loop loop, const void* params) {
  LoopNest nest;
  if (!make_loop_nest(nest, operands, sizes)) return;
  char* data[kMaxOperands];
  OperandTypes types[kMaxOperands];
  for (int k = 0; k < nest.operands; ++k) {
    data[k] = operands[k].data;
    types[k] = {operands[k].dtype, loop_dtype(kernel, compute, k)};
  }
  if (run_blocks(nest, data, types, kernel.outputs, loop, params)) refuse(kernel);
}

}  // namespace

void run_strided(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                 std::span<const int64_t> sizes, std::span<const ParamValue> params) {
  Loop loop = loop_of(kernel, compute, operands.size(), params.size());
  ParamBuffer buffer(params, param_dtype(compute));
  if (!try_contiguous(kernel, compute, operands, sizes, loop, buffer.bytes))
    run_general(kernel, compute, operands, sizes, loop, buffer.bytes);
}

namespace {

// With the numbers among the operands written out as arrays.
[[gnu::noinline]] bool run_with_numbers(const PointwiseKernel& kernel, DType compute,
                                        std::span<const Operand> operands, int64_t n,
                                        std::span<const ParamValue> params, uint32_t numbers) {
  constexpr size_t kWidest = 16;
  alignas(64) char arrays[kMaxOperands][kFewElements * kWidest];
  Operand all[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k) {
    all[k] = operands[k];
    if (!(numbers >> k & 1)) continue;
    const DType wanted = loop_dtype(kernel, compute, static_cast<int>(k));
    const auto item = static_cast<size_t>(item_size(wanted));
    if (wanted == operands[k].dtype) {
      std::memcpy(arrays[k], operands[k].data, item);
    } else {
      char* pointers[] = {arrays[k], operands[k].data};
      converter(wanted, operands[k].dtype)(1, pointers, nullptr);
    }
    for (int64_t i = 1; i < n; ++i) std::memcpy(arrays[k] + static_cast<size_t>(i) * item, arrays[k], item);
    all[k].data = arrays[k];
    all[k].dtype = wanted;
  }
  return run_contiguous(kernel, compute, {all, operands.size()}, n, params);
}

}  // namespace

bool run_contiguous(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                    int64_t n, std::span<const ParamValue> params, uint32_t numbers) {
  if (numbers) return run_with_numbers(kernel, compute, operands, n, params, numbers);
  Loop loop = loop_of(kernel, compute, operands.size(), params.size());
  if (!has_loop_dtypes(kernel, compute, operands)) return false;
  ParamBuffer buffer(params, param_dtype(compute));
  run_arrays(kernel, operands, n, loop, buffer.bytes);
  return true;
}

void copy_strided(const Operand& dst, const Operand& src, std::span<const int64_t> sizes) {
  const Operand operands[] = {dst, src};
  LoopNest nest;
  if (!make_loop_nest(nest, operands, sizes)) return;
  char* data[] = {dst.data, src.data};
  OperandTypes types[] = {{dst.dtype, dst.dtype}, {src.dtype, src.dtype}};
  Loop loop = dst.dtype == src.dtype ? nullptr : converter(dst.dtype, src.dtype);
  run_blocks(nest, data, types, 1, loop, nullptr);
}

void fill_strided(const Operand& dst, std::span<const int64_t> sizes, const void* number, DType dtype) {
  alignas(16) char element[16];
  char* pointers[] = {element, static_cast<char*>(const_cast<void*>(number))};
  converter(dst.dtype, dtype)(1, pointers, nullptr);
  constexpr int64_t kRepeats[kMaxRank] = {};
  copy_strided(dst, {element, dst.dtype, kRepeats}, sizes);
}

}  // namespace weft::cpu
