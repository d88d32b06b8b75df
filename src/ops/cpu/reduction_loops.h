#pragma once

#include "ops/cpu/pointwise_loops.h"
#include "ops/cpu/reduction.h"
#include "ops/scalar/reductions.h"

// Loops of reductions with one accumulator (ops/scalar/reductions.h). Every template has an Isa among its
// arguments.
namespace weft::cpu {

template <typename T, typename Isa>
Pack<T, Isa> lowest(Pack<T, Isa>) {
  using E = typename Pack<T, Isa>::Element;
  if constexpr (Pack<T, Isa>::kCategory == Category::kReal) return Pack<T, Isa>(-__builtin_inf());
  else if constexpr (Pack<T, Isa>::kCategory == Category::kSigned)
    return Pack<T, Isa>(static_cast<E>(E(1) << (8 * sizeof(E) - 2)) * -2);
  else return Pack<T, Isa>(0);
}
template <typename T, typename Isa>
Pack<T, Isa> highest(Pack<T, Isa> x) {
  using E = typename Pack<T, Isa>::Element;
  if constexpr (Pack<T, Isa>::kCategory == Category::kReal) return Pack<T, Isa>(__builtin_inf());
  else if constexpr (Pack<T, Isa>::kCategory == Category::kSigned) return ~lowest(x);
  else if constexpr (Pack<T, Isa>::kCategory == Category::kBool) return Pack<T, Isa>(1);
  else return Pack<T, Isa>(static_cast<E>(-1));
}

// An accumulator for as many lanes as a loaded value has: the value's own type, or twice its precision.
template <typename Value, bool widens>
struct Accumulator {
  using Part = Value;
  static constexpr int kParts = 1;
  Value part[1];
  static Accumulator from(Value x) { return {{x}}; }
};
template <typename Isa>
struct Accumulator<Pack<float, Isa>, true> {
  using Part = Pack<double, Isa>;
  static constexpr int kParts = 2;
  Part part[2];
  static Accumulator from(Pack<float, Isa> x) {
    Accumulator result;
    Isa::widen(x.v, result.part[0].v, result.part[1].v);
    return result;
  }
};

// The type in memory of one accumulator.
template <typename Part>
struct PartIo;
template <typename T, typename Isa>
struct PartIo<Pack<T, Isa>> : ValueIo<T, Isa> {
  static constexpr DType kDType = dtype_of<T>;
  static void store(char* p, Pack<T, Isa> x) { x.store(p); }
};
template <typename T, typename Isa>
struct PartIo<scalar::ComplexPair<Pack<T, Isa>>> : ValueIo<Complex<T>, Isa> {
  static constexpr DType kDType = dtype_of<Complex<T>>;
  static void store(char* p, scalar::ComplexPair<Pack<T, Isa>> x) { store_pairs(p, x.re, x.im); }
};

// What is done with the accumulators of a block alone: one for all element types that accumulate in Part.
template <typename R, typename Part>
struct AccumulatorBlock {
  using Io = PartIo<Part>;
  static constexpr int kLanes = Io::kLanes, kSize = Io::kSize;

  static void init(char* block, int64_t columns) {
    alignas(64) char lanes[kLanes * kSize];
    Io::store(lanes, R::template identity<Part>());
    for (int64_t c = 0; c < columns; ++c)
      __builtin_memcpy(block + kReductionHeader + c * kSize, lanes, kSize);
  }
  template <typename F>
  static void for_each_pack(int64_t columns, F f) {
    for (int64_t c = 0; c < columns; c += kLanes)
      f(c, columns - c < kLanes ? static_cast<int>(columns - c) : kLanes);
  }
  static Part load_some(const char* p, int count) {
    alignas(64) char lanes[kLanes * kSize] = {};
    __builtin_memcpy(lanes, p, count * kSize);
    return Io::load(lanes);
  }
  static void store_some(char* p, Part x, int count) {
    alignas(64) char lanes[kLanes * kSize];
    Io::store(lanes, x);
    __builtin_memcpy(p, lanes, count * kSize);
  }
  static void combine(char* block, const char* other, int64_t columns) {
    for_each_pack(columns, [&](int64_t c, int count) {
      int64_t at = kReductionHeader + c * kSize;
      store_some(block + at, R::combine(load_some(block + at, count), load_some(other + at, count)), count);
    });
  }
  // As the reduction `Finish` has it, which may differ from R in this alone.
  template <typename Finish>
  static void finish(const char* block, int64_t columns, [[maybe_unused]] int64_t n, double,
                     char* const* outputs) {
    for_each_pack(columns, [&](int64_t c, int count) {
      Part x = load_some(block + kReductionHeader + c * kSize, count);
      if constexpr (Finish::kAverages) x = Finish::finish(x, Part(static_cast<double>(n)));
      store_some(outputs[0] + c * kSize, x, count);
    });
  }
};

template <typename Isa, typename R, typename T>
struct SimpleReduction {
  using Io = ValueIo<T, Isa>;
  using Value = typename Io::Value;
  using Acc = Accumulator<Value, R::kWidens>;
  using Part = typename Acc::Part;
  using AccIo = PartIo<Part>;
  static constexpr int kLanes = Io::kLanes, kPartLanes = AccIo::kLanes, kAccSize = AccIo::kSize;
  static constexpr int64_t kCascade = kLongestRun;  // elements between additions to the running total
  static constexpr int kTree = 8;
  static constexpr int kPacks = 4;
  static constexpr int64_t kStream =
      128 * 1024;  // bytes read in a row that do not come from the nearest caches

  static Acc identity() {
    Acc acc;
    for (Part& part : acc.part) part = R::template identity<Part>();
    return acc;
  }
  static Acc combined(Acc a, Acc b) {
    for (int k = 0; k < Acc::kParts; ++k) a.part[k] = R::combine(a.part[k], b.part[k]);
    return a;
  }
  static Acc load_acc(const char* p) {
    Acc acc;
    for (int k = 0; k < Acc::kParts; ++k) acc.part[k] = AccIo::load(p + k * kPartLanes * kAccSize);
    return acc;
  }
  static void store_acc(char* p, Acc acc) {
    for (int k = 0; k < Acc::kParts; ++k) AccIo::store(p + k * kPartLanes * kAccSize, acc.part[k]);
  }
  static Value load(const char* p) { return R::step(Io::load(p)); }
  // Eight packs, `stride` bytes apart.
  static Acc tree(const char* p, int64_t stride) {
    auto at = [&](int i) { return load(p + i * stride); };
    Value a = R::combine(R::combine(at(0), at(1)), R::combine(at(2), at(3)));
    Value b = R::combine(R::combine(at(4), at(5)), R::combine(at(6), at(7)));
    return Acc::from(R::combine(a, b));
  }
  // A whole pack whose lanes from `count` on do nothing: a step leaves the identity as it is.
  static Acc partial(const char* p, int count) {
    alignas(64) char buffer[kLanes * Io::kSize];
    char* const out[] = {buffer};
    ResultIo<Value, T>::store(out, 0, R::template identity<Value>());
    __builtin_memcpy(buffer, p, static_cast<size_t>(count * Io::kSize));
    return Acc::from(load(buffer));
  }
  // The last `count` elements before `end`, read with those before them, which do nothing.
  static Acc ending(const char* end, int count) {
    Mask kept;
    __builtin_memcpy(&kept.v, kEnding.lanes + count, sizeof(kept.v));
    return Acc::from(where(kept, load(end - kLanes * Io::kSize), R::template identity<Value>()));
  }
  using Mask = scalar::MaskOf<Value>;
  using MaskLane = std::remove_reference_t<decltype(Mask::v[0])>;
  struct Ending {
    MaskLane lanes[2 * kLanes];  // none, then all
    constexpr Ending() : lanes() {
      for (int i = kLanes; i < 2 * kLanes; ++i) lanes[i] = -1;
    }
  };
  static constexpr Ending kEnding = {};
  // Streams: what comes after the block is read too. It is prefetched three pages ahead, since the processor
  // by itself stops at the end of each page. Inlined, or its result would go through memory.
  [[gnu::always_inline]] static Acc reduce_block(const char* p, int64_t n, bool streams) {
    constexpr int64_t kTreeBytes = kTree * kLanes * Io::kSize, kAhead = 3 * 4096;
    Acc acc = identity();
    int64_t i = 0;
    for (; i + kTree * kLanes <= n; i += kTree * kLanes) {
      const char* at = p + i * Io::kSize;
      if (streams)
        for (int64_t line = 0; line < kTreeBytes; line += 64) __builtin_prefetch(at + kAhead + line);
      acc = combined(acc, tree(at, kLanes * Io::kSize));
    }
    for (; i + kLanes <= n; i += kLanes) acc = combined(acc, Acc::from(load(p + i * Io::kSize)));
    if (i == n) return acc;
    int left = static_cast<int>(n - i);
    return combined(acc, n < kLanes ? partial(p, left) : ending(p + n * Io::kSize, left));
  }
  // Combines all lanes; every lane of the result is the total.
  static Part across(Acc acc) {
    Part x = acc.part[0];
    for (int k = 1; k < Acc::kParts; ++k) x = R::combine(x, acc.part[k]);
    return combine_lanes<kPartLanes / 2>(x);
  }
  template <int half>
  static Part combine_lanes(Part x) {
    if constexpr (half == 0) return x;
    else return combine_lanes<half / 2>(R::combine(x, rotate_lanes<half>(x)));
  }

  static void row(char* block, int64_t, int64_t column, const char* data, int64_t n, int64_t) {
    const bool streams = n * Io::kSize >= kStream;
    Acc total = identity();
    for (int64_t i = 0; i < n; i += kCascade)
      total =
          combined(total, reduce_block(data + i * Io::kSize, n - i < kCascade ? n - i : kCascade, streams));
    add_to(block + kReductionHeader + column * kAccSize, total);
  }
  static void runs(char* block, int64_t column, const char* data, int64_t runs, int64_t stride, int64_t n) {
    char* target = block + kReductionHeader + column * kAccSize;
    const bool streams = stride == n * Io::kSize && runs * stride >= kStream;
    for (int64_t r = 0; r < runs; ++r, data += stride, target += kAccSize)
      add_to(target, reduce_block(data, n, streams));
  }
  // Every lane of the sum is the same: the first is the accumulator's.
  [[gnu::always_inline]] static void add_to(char* target, Acc total) {
    store_first(target, R::combine(AccIo::broadcast(target, 0), across(total)));
  }
  template <typename U>
  static void store_first(char* p, Pack<U, Isa> x) {
    const auto first = x.v[0];
    __builtin_memcpy(p, &first, sizeof(first));
  }
  template <typename P>
  static void store_first(char* p, scalar::ComplexPair<P> x) {
    store_first(p, x.re);
    store_first(p + sizeof(x.re.v[0]), x.im);
  }

  // Adds eight rows to the accumulators of `packs` neighbouring packs of columns. Their trees come before the
  // accumulators: rows whose distance is a power of two meet in a few sets of the cache, and what is between
  // two packs of a line can push that line out.
  template <int packs>
  [[gnu::always_inline]] static void add_trees(char* accs, const char* data, int64_t stride) {
    Acc sum[packs];
    for (int k = 0; k < packs; ++k) sum[k] = tree(data + k * kLanes * Io::kSize, stride);
    for (int k = 0; k < packs; ++k) {
      char* acc = accs + k * kLanes * kAccSize;
      store_acc(acc, combined(load_acc(acc), sum[k]));
    }
  }
  static void rows(char* block, int64_t columns, const char* data, int64_t rows, int64_t stride, int64_t) {
    char* accs = block + kReductionHeader;
    // Few rows at a time: a walk down a column of a wide array would miss a cache line in every row.
    for (; rows >= kTree; rows -= kTree, data += kTree * stride) {
      int64_t c = 0;
      for (; c + kPacks * kLanes <= columns; c += kPacks * kLanes)
        add_trees<kPacks>(accs + c * kAccSize, data + c * Io::kSize, stride);
      for (; c + kLanes <= columns; c += kLanes)
        add_trees<1>(accs + c * kAccSize, data + c * Io::kSize, stride);
      if (c < columns)
        add_tail(accs + c * kAccSize, data + c * Io::kSize, kTree, stride, static_cast<int>(columns - c));
    }
    for (; rows > 0; --rows, data += stride) {
      int64_t c = 0;
      for (; c + kLanes <= columns; c += kLanes) {
        char* acc = accs + c * kAccSize;
        store_acc(acc, combined(load_acc(acc), Acc::from(load(data + c * Io::kSize))));
      }
      if (c < columns)
        add_tail(accs + c * kAccSize, data + c * Io::kSize, 1, stride, static_cast<int>(columns - c));
    }
  }
  [[gnu::noinline]] static void add_tail(char* accs, const char* data, int64_t rows, int64_t stride,
                                         int count) {
    alignas(64) char lanes[kLanes * kAccSize] = {};
    __builtin_memcpy(lanes, accs, count * kAccSize);
    Acc acc = load_acc(lanes);
    for (int64_t r = 0; r < rows; ++r) acc = combined(acc, partial(data + r * stride, count));
    store_acc(lanes, acc);
    __builtin_memcpy(accs, lanes, count * kAccSize);
  }

  using Block = AccumulatorBlock<R, Part>;
  template <typename Finish>
  static constexpr ReductionLoops kLoopsFor = {
      kAccSize,       {AccIo::kDType, AccIo::kDType}, Block::init, row, rows,
      Block::combine, Block::template finish<Finish>, runs};
  static constexpr ReductionLoops kLoops = kLoopsFor<R>;
};

// Accumulates as R does and finishes as `Finish` does: the loops are R's.
template <typename Isa, typename R, typename Finish, typename T>
struct FinishedReduction {
  static constexpr ReductionLoops kLoops = SimpleReduction<Isa, R, T>::template kLoopsFor<Finish>;
};

template <typename Isa, template <typename, typename> typename Loops, uint16_t dtypes>
constexpr ReductionTable reduction_table() {
  ReductionTable table;
#define WEFT_X(cpp, name)                        \
  if constexpr (dtypes & dtype_bit(DType::name)) \
    table.loops[static_cast<int>(DType::name)] = &Loops<Isa, cpp>::kLoops;
  WEFT_FOR_EACH_DTYPE(WEFT_X)
#undef WEFT_X
  return table;
}

}  // namespace weft::cpu
