#pragma once

#include "ops/cpu/pointwise.h"

// The last elements of an array, too few for a pack. Included by the files of instruction sets only; every
// template here has an Isa among its arguments.
namespace weft::cpu {

// What the tail of a loop depends on, so that loops of one shape share it.
struct TailShape {
  int lanes;  // elements of a pack
  int outputs, output_size, inputs, input_size;
  uint32_t mask_inputs = 0;  // a bit for each input that is a mask: its elements are bytes

  constexpr int size_of_input(int k) const { return mask_inputs >> k & 1 ? 1 : input_size; }
};

// An instruction set's own way needs as many elements as fill its registers.
template <typename Isa, int lanes, int size>
void copy_lanes(char* buffer, const char* source, int count) {
  if constexpr (size * lanes == Isa::kBytes) {
    Isa::template spread<size>(buffer, source, count);
  } else {
    for (int i = 0; i < lanes; ++i)
      __builtin_memcpy(buffer + i * size, source + (i < count ? i : 0) * size, size);
  }
}
template <typename Isa, int lanes, int size>
void keep_lanes(char* target, const char* buffer, int count) {
  if constexpr (size * lanes == Isa::kBytes) Isa::template keep<size>(target, buffer, count);
  else
    for (int i = 0; i < lanes; ++i)
      if (i < count) __builtin_memcpy(target + i * size, buffer + i * size, size);
}

// Runs a loop of whole packs on fewer elements than a pack has. They go through the same packs, in buffers
// whose spare lanes repeat the first one: results do not depend on the place in the array, and a spare lane
// is never refused on its own. Not inlined: it would be compiled again for every loop.
template <typename Isa, TailShape shape>
[[gnu::noinline]] bool run_few(int64_t n, char* const* pointers, const void* params, Loop run_packs) {
  constexpr int kWidest = shape.output_size > shape.input_size ? shape.output_size : shape.input_size;
  constexpr int kBytes = shape.lanes * kWidest, kOperands = shape.outputs + shape.inputs;
  alignas(64) char buffers[kOperands][kBytes < 64 ? 64 : kBytes];
  char* local[kOperands];
  for (int k = 0; k < kOperands; ++k) {
    local[k] = buffers[k];
    asm("" : "+r"(local[k]));  // stored by itself: two that are put into one vector take longer
  }
  const int count = static_cast<int>(n);
  for (int k = 0; k < shape.inputs; ++k) {
    char* buffer = buffers[shape.outputs + k];
    const char* source = pointers[shape.outputs + k];
    if (shape.size_of_input(k) == 1) copy_lanes<Isa, shape.lanes, 1>(buffer, source, count);
    else copy_lanes<Isa, shape.lanes, shape.input_size>(buffer, source, count);
  }
  const bool refused = run_packs(shape.lanes, local, params);
  for (int k = 0; k < shape.outputs; ++k)
    keep_lanes<Isa, shape.lanes, shape.output_size>(pointers[k], buffers[k], count);
  return refused;
}

// Runs it on whole packs and a tail.
template <typename Isa, TailShape shape>
[[gnu::noinline]] bool run_with_tail(int64_t n, char* const* pointers, const void* params, Loop run_packs) {
  const int64_t whole = n & ~static_cast<int64_t>(shape.lanes - 1);
  const bool refused = run_packs(whole, pointers, params);
  char* rest[shape.outputs + shape.inputs];
  for (int k = 0; k < shape.outputs + shape.inputs; ++k) {
    char* p = pointers[k];
    asm("" : "+r"(p));  // loaded by itself: a vector of two would wait for the stores of both
    rest[k] = p + whole * (k < shape.outputs ? shape.output_size : shape.size_of_input(k - shape.outputs));
  }
  return run_few<Isa, shape>(n - whole, rest, params, run_packs) | refused;
}

}  // namespace weft::cpu
