#pragma once

#include "ops/cpu/reduction_loops.h"

// Variance. Blocks that fit the first-level cache are read twice (mean, then squared deviations, in double);
// their means and deviations combine by Chan's formula, so nothing cancels.
namespace weft::cpu {

// What is done with the accumulators of a block alone, for all element types.
template <typename Isa>
struct VarianceBlock {
  using Part = Pack<double, Isa>;

  // A block: counts of elements so far, then means, then sums of squared deviations.
  static double* counts(char* block) { return reinterpret_cast<double*>(block + kReductionHeader); }
  static double* means(char* block, int64_t columns) { return counts(block) + columns; }
  static double* deviations(char* block, int64_t columns) { return counts(block) + 2 * columns; }

  static void init(char* block, int64_t columns) {
    __builtin_memset(block, 0, kReductionHeader + 3 * columns * sizeof(double));
  }

  static void merge(char* block, int64_t columns, int64_t c, double count, double mean, double deviation) {
    const scalar::Moments<double> before = {counts(block)[c], means(block, columns)[c],
                                            deviations(block, columns)[c]};
    const scalar::Moments<double> both = scalar::merged(before, {count, mean, deviation});
    counts(block)[c] = both.count;
    means(block, columns)[c] = both.mean;
    deviations(block, columns)[c] = both.deviation;
  }

  static void combine(char* block, const char* other_block, int64_t columns) {
    char* other = const_cast<char*>(other_block);
    for (int64_t c = 0; c < columns; ++c)
      if (counts(other)[c] != 0)
        merge(block, columns, c, counts(other)[c], means(other, columns)[c], deviations(other, columns)[c]);
  }
  template <bool root, bool with_mean>
  static void finish(const char* block_, int64_t columns, int64_t count, double correction,
                     char* const* outputs) {
    char* block = const_cast<char*>(block_);
    for (int64_t c = 0; c < columns; c += Part::kLanes) {
      const int64_t lanes = columns - c < Part::kLanes ? columns - c : Part::kLanes;
      const scalar::Moments<Part> moments = {some(counts(block) + c, lanes),
                                             some(means(block, columns) + c, lanes),
                                             some(deviations(block, columns) + c, lanes)};
      const scalar::Two<Part> result = scalar::VarianceFunctor<root, with_mean>::finish(
          moments, Part(static_cast<double>(count)), Part(correction));
      __builtin_memcpy(outputs[0] + 8 * c, &result.first.v, 8 * lanes);
      if (with_mean) __builtin_memcpy(outputs[1] + 8 * c, &result.second.v, 8 * lanes);
    }
  }
  static Part some(const double* p, int64_t lanes) {
    alignas(64) double buffer[Part::kLanes] = {};
    __builtin_memcpy(buffer, p, 8 * lanes);
    return Part::load(buffer);
  }
};

template <typename Isa, typename T>
struct VarianceLoops {
  using Block = VarianceBlock<Isa>;
  using Io = ValueIo<T, Isa>;
  using Value = typename Io::Value;
  using Acc = Accumulator<Value, true>;
  using Part = typename Acc::Part;
  static_assert(sizeof(typename Part::Element) == 8);
  static constexpr int kLanes = Io::kLanes;
  static constexpr int64_t kBlock = 1024, kRowGroup = 32;

  static double total(Acc acc) {
    Part sum = acc.part[0];
    for (int k = 1; k < Acc::kParts; ++k) sum = sum + acc.part[k];
    double result = 0;
    for (int i = 0; i < Part::kLanes; ++i) result += sum.v[i];
    return result;
  }
  static Acc squares(Acc x, Part mean) {
    for (Part& part : x.part) part = (part - mean) * (part - mean);
    return x;
  }
  static Acc sum(Acc a, Acc b) {
    for (int k = 0; k < Acc::kParts; ++k) a.part[k] = a.part[k] + b.part[k];
    return a;
  }
  static Acc zero() { return SimpleReduction<Isa, scalar::SumReduction, T>::identity(); }
  static double lane(Acc acc, int i) { return acc.part[i / Part::kLanes].v[i % Part::kLanes]; }
  static Acc load_few(const char* p, int count) {
    alignas(64) char buffer[kLanes * Io::kSize] = {};
    __builtin_memcpy(buffer, p, count * Io::kSize);
    return Acc::from(Io::load(buffer));
  }

  static void add_block(char* block, int64_t columns, int64_t column, const char* p, int64_t n) {
    Acc sums = zero(), rest = zero();
    int64_t whole = n & ~static_cast<int64_t>(kLanes - 1);
    int tail = static_cast<int>(n - whole);
    for (int64_t i = 0; i < whole; i += kLanes) sums = sum(sums, Acc::from(Io::load(p + i * Io::kSize)));
    if (tail) rest = load_few(p + whole * Io::kSize, tail);
    double block_mean = (total(sums) + total(rest)) / static_cast<double>(n);
    Acc squared = zero();
    for (int64_t i = 0; i < whole; i += kLanes)
      squared = sum(squared, squares(Acc::from(Io::load(p + i * Io::kSize)), Part(block_mean)));
    double block_deviation = total(squared);
    for (int i = 0; i < tail; ++i)
      block_deviation += (lane(rest, i) - block_mean) * (lane(rest, i) - block_mean);
    Block::merge(block, columns, column, static_cast<double>(n), block_mean, block_deviation);
  }
  static void row(char* block, int64_t columns, int64_t column, const char* data, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += kBlock)
      add_block(block, columns, column, data + i * Io::kSize, n - i < kBlock ? n - i : kBlock);
  }

  static void rows(char* block, int64_t columns, const char* data, int64_t rows, int64_t stride, int64_t) {
    for (int64_t r = 0; r < rows; r += kRowGroup) {
      int64_t group = rows - r < kRowGroup ? rows - r : kRowGroup;
      for (int64_t c = 0; c < columns; c += kLanes) {
        int count = columns - c < kLanes ? static_cast<int>(columns - c) : kLanes;
        add_group(block, columns, c, count, data + r * stride + c * Io::kSize, group, stride);
      }
    }
  }
  static void add_group(char* block, int64_t columns, int64_t c, int count, const char* p, int64_t rows,
                        int64_t stride) {
    auto load = [&](int64_t r) {
      return count == kLanes ? Acc::from(Io::load(p + r * stride)) : load_few(p + r * stride, count);
    };
    Acc mean = zero(), squared = zero();
    for (int64_t r = 0; r < rows; ++r) mean = sum(mean, load(r));
    for (Part& part : mean.part) part = part / Part(static_cast<double>(rows));
    for (int64_t r = 0; r < rows; ++r) {
      Acc x = load(r);
      for (int k = 0; k < Acc::kParts; ++k) {
        Part d = x.part[k] - mean.part[k];
        squared.part[k] = squared.part[k] + d * d;
      }
    }
    for (int i = 0; i < count; ++i)
      Block::merge(block, columns, c + i, static_cast<double>(rows), lane(mean, i), lane(squared, i));
  }

  template <bool root, bool with_mean>
  static constexpr ReductionLoops kLoopsFor = {
      3 * sizeof(double), {DType::kFloat64, DType::kFloat64},     Block::init, row, rows,
      Block::combine,     Block::template finish<root, with_mean>};
};

// The variance or its root, perhaps with the mean: all loops but `finish` are the same.
template <typename Isa, typename T, bool root, bool with_mean>
struct VarianceReduction {
  static constexpr ReductionLoops kLoops = VarianceLoops<Isa, T>::template kLoopsFor<root, with_mean>;
};

}  // namespace weft::cpu
