#include "ops/cpu/pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/cpu/convert.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/scratch.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const PoolLoops<float> pool_f32; extern const PoolLoops<double> pool_f64;
                  extern const PoolLoops<int32_t> pool_i32; extern const PoolLoops<int64_t> pool_i64;)

namespace {

template <typename T>
const PoolLoops<T>& loops() {
  using Loops = PoolLoops<T>;
  if constexpr (std::is_same_v<T, float>) return active_table<Loops>(WEFT_ISA_TABLES(pool_f32));
  else if constexpr (std::is_same_v<T, double>) return active_table<Loops>(WEFT_ISA_TABLES(pool_f64));
  else if constexpr (std::is_same_v<T, int32_t>) return active_table<Loops>(WEFT_ISA_TABLES(pool_i32));
  else return active_table<Loops>(WEFT_ISA_TABLES(pool_i64));
}

// Calls f with the type that pooling of `type` computes in. Sums of integers need the widest.
template <typename F>
void visit_compute_type(DType type, bool sums, F f) {
  if (type == kFloat64) return f.template operator()<double>();
  if (is_floating(type)) return f.template operator()<float>();
  if (type == kInt64 || sums) return f.template operator()<int64_t>();
  return f.template operator()<int32_t>();
}

// How many contiguous planes are turned into lanes at once: a pack of f32.
constexpr int64_t kTurned = 8;

// A part of an array that one task works on: some channels of a sample, or some planes of the whole batch.
struct Block {
  int64_t offset;  // of its first element
  int64_t lanes;
};

// The same blocks for all arrays of a call.
class Blocks {
 public:
  Blocks(const ImageArray& array, int64_t pixels) : is_last_(array.is_channels_last) {
    constexpr int64_t kWork = 1 << 15, kLeastLanes = 16, kMostBlocks = 16;
    if (!is_last_) {
      count_ = (array.batch * array.channels + kTurned - 1) / kTurned;
      grain_ = std::max<int64_t>(1, kWork / std::max<int64_t>(1, pixels * kTurned));
      return;
    }
    // Whole samples where there are many, else enough blocks for many threads.
    lanes_ = array.channels;
    if (array.batch < kMostBlocks / 2) {
      const int64_t slices = (kMostBlocks + array.batch - 1) / std::max<int64_t>(1, array.batch);
      const int64_t wanted = std::max(array.channels / slices, kWork / std::max<int64_t>(1, pixels));
      lanes_ = std::min(array.channels, (wanted + kLeastLanes - 1) / kLeastLanes * kLeastLanes);
    }
    slices_ = (array.channels + lanes_ - 1) / lanes_;
    count_ = array.batch * slices_;
    grain_ = std::max<int64_t>(1, kWork / std::max<int64_t>(1, pixels * lanes_));
  }

  template <typename F>
  void for_each(F f) const {
    parallel_for(0, count_, grain_, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) f(i);
    });
  }
  Block in(const ImageArray& array, int64_t i) const {
    if (!is_last_)
      return {i * kTurned * array.pixels(), std::min(kTurned, array.batch * array.channels - i * kTurned)};
    const int64_t channel = i % slices_ * lanes_;
    return {i / slices_ * array.channels * array.pixels() + channel,
            std::min(lanes_, array.channels - channel)};
  }

 private:
  bool is_last_;
  int64_t lanes_ = kTurned, slices_ = 1, count_, grain_;
};

// A block as pixels of adjacent lanes of type T: the memory itself where it is that, else a copy.
template <typename T>
class Lanes {
 public:
  Lanes(const ImageArray& array, const Block& block)
      : array_(array),
        block_(block),
        is_direct_(array.is_channels_last && array.type == dtype_of<T>),
        copy_(is_direct_ ? 0 : array.pixels() * block.lanes * static_cast<int64_t>(sizeof(T))) {}

  int64_t step() const { return is_direct_ ? array_.channels : block_.lanes; }
  T* data() const {
    return is_direct_ ? reinterpret_cast<T*>(array_.data) + block_.offset : copy_.template as<T>();
  }

  T* read() const {
    if (is_direct_) return data();
    if (array_.is_channels_last) move_pixels<true>();
    else turn<true>();
    return data();
  }
  void write() const {
    if (is_direct_) return;
    if (array_.is_channels_last) move_pixels<false>();
    else turn<false>();
  }
  // Copies only: what is direct is cleared as a whole.
  void clear() const {
    if (!is_direct_) std::memset(data(), 0, static_cast<size_t>(array_.pixels() * block_.lanes) * sizeof(T));
  }

 private:
  char* memory(int64_t element) const {
    return array_.data + (block_.offset + element) * item_size(array_.type);
  }
  static void convert(bool reads, DType type, int64_t n, char* memory, T* own) {
    char* const mine = reinterpret_cast<char*>(own);
    char* pointers[] = {reads ? mine : memory, reads ? memory : mine};
    (reads ? converter(dtype_of<T>, type) : converter(type, dtype_of<T>))(n, pointers, nullptr);
  }

  template <bool reads>
  void move_pixels() const {
    for (int64_t p = 0; p < array_.pixels(); ++p)
      convert(reads, array_.type, block_.lanes, memory(p * array_.channels), data() + p * block_.lanes);
  }

  // Between planes and lanes.
  template <bool reads>
  void turn() const {
    const int64_t pixels = array_.pixels();
    const bool same_type = array_.type == dtype_of<T>;
    const Scratch wide(same_type ? 0 : pixels * block_.lanes * static_cast<int64_t>(sizeof(T)));
    T* const planes = same_type ? reinterpret_cast<T*>(memory(0)) : wide.as<T>();
    if (reads && !same_type) convert(true, array_.type, pixels * block_.lanes, memory(0), planes);
    if (block_.lanes == kTurned) turn_lanes<reads, kTurned>(planes, data(), pixels, kTurned);
    else turn_lanes<reads, 0>(planes, data(), pixels, block_.lanes);
    if (!reads && !same_type) convert(false, array_.type, pixels * block_.lanes, memory(0), planes);
  }
  template <bool reads, int64_t fixed>
  static void turn_lanes(T* planes, T* own, int64_t pixels, int64_t lanes) {
    if (fixed > 0) lanes = fixed;
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t l = 0; l < lanes; ++l) {
        T &plane = planes[l * pixels + p], &lane = own[p * lanes + l];
        if (reads) lane = plane;
        else plane = lane;
      }
  }

  const ImageArray& array_;
  const Block block_;
  const bool is_direct_;
  const Scratch copy_;
};

// Sets all elements to 0, on all threads.
void clear(const ImageArray& array) {
  constexpr int64_t kBytes = 1 << 18;
  parallel_for(0, array.batch * array.channels * array.pixels() * item_size(array.type), kBytes,
               [&](int64_t first, int64_t last) {
                 std::memset(array.data + first, 0, static_cast<size_t>(last - first));
               });
}

// Memory that is used as it is needs no blocks of channels to compute forward: f(sample, row of the output).
template <typename T>
bool is_direct(const ImageArray& in, const ImageArray& out) {
  return in.is_channels_last && in.type == dtype_of<T> && out.type == dtype_of<T>;
}
template <typename F>
void for_each_row(const ImageArray& in, const ImageArray& out, F f) {
  constexpr int64_t kWork = 1 << 15;
  const int64_t work = in.pixels() * in.channels / std::max<int64_t>(1, out.height);
  parallel_for(0, in.batch * out.height, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first; row < last; ++row) f(row / out.height, row % out.height);
               });
}
PoolPlan row_of(PoolPlan plan, int64_t row) {
  plan.rows += row;
  plan.out_height = 1;
  return plan;
}
template <typename T>
T* sample_of(const ImageArray& array, int64_t sample, int64_t row = 0) {
  return reinterpret_cast<T*>(array.data) + (sample * array.pixels() + row * array.width) * array.channels;
}

int64_t lowest_integer(DType type) {
  if (type == kUInt8) return 0;
  return is_integral(type) ? -(int64_t{1} << (item_size(type) * 8 - 2)) * 2 : 0;
}
PoolPlan plan_of(const PoolWindows& w, const ImageArray& in, const ImageArray& out) {
  return {in.width,   out.height,    out.width, w.rows.data(),          w.columns.data(),
          w.row_step, w.column_step, w.divisor, lowest_integer(in.type)};
}

}  // namespace

void max_pool(const PoolWindows& windows, const ImageArray& in, const ImageArray& out,
              const ImageArray& places) {
  require(in.pixels() <= std::numeric_limits<int32_t>::max(), "max_pool2d: a plane of {} x {} is too large",
          in.height, in.width);
  const PoolPlan plan = plan_of(windows, in, out);
  const Blocks blocks(in, in.pixels());
  visit_compute_type(in.type, false, [&]<typename T>() {
    if (is_direct<T>(in, out))
      return for_each_row(in, out, [&](int64_t n, int64_t row) {
        loops<T>().max(row_of(plan, row), in.channels, sample_of<T>(in, n), in.channels,
                       sample_of<T>(out, n, row), in.channels, sample_of<int64_t>(places, n, row),
                       in.channels);
      });
    blocks.for_each([&](int64_t i) {
      const Block from = blocks.in(in, i), to = blocks.in(out, i);
      const Lanes<T> x(in, from), y(out, to);
      const Lanes<int64_t> at(places, to);
      loops<T>().max(plan, from.lanes, x.read(), x.step(), y.data(), y.step(), at.data(), at.step());
      y.write();
      at.write();
    });
  });
}

void average_pool(const PoolWindows& windows, const ImageArray& in, const ImageArray& out) {
  const PoolPlan plan = plan_of(windows, in, out);
  const Blocks blocks(in, in.pixels());
  visit_compute_type(in.type, true, [&]<typename T>() {
    if (is_direct<T>(in, out))
      return for_each_row(in, out, [&](int64_t n, int64_t row) {
        loops<T>().average(row_of(plan, row), in.channels, sample_of<T>(in, n), in.channels,
                           sample_of<T>(out, n, row), in.channels);
      });
    blocks.for_each([&](int64_t i) {
      const Block from = blocks.in(in, i);
      const Lanes<T> x(in, from), y(out, blocks.in(out, i));
      loops<T>().average(plan, from.lanes, x.read(), x.step(), y.data(), y.step());
      y.write();
    });
  });
}

void average_pool_backward(const PoolWindows& windows, const ImageArray& grad, const ImageArray& grad_in) {
  const PoolPlan plan = plan_of(windows, grad_in, grad);
  const Blocks blocks(grad_in, grad_in.pixels());
  visit_compute_type(grad_in.type, true, [&]<typename T>() {
    if (is_direct<T>(grad_in, grad_in)) clear(grad_in);
    blocks.for_each([&](int64_t i) {
      const Block to = blocks.in(grad_in, i);
      const Lanes<T> g(grad, blocks.in(grad, i)), x(grad_in, to);
      x.clear();
      loops<T>().average_backward(plan, to.lanes, g.read(), g.step(), x.data(), x.step());
      x.write();
    });
  });
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void wrong_place(int64_t place, int64_t pixels) {
  fail("max_pool2d_with_indices_backward: index {} is out of range for a plane of {} elements", place,
       pixels);
}
inline int64_t checked(int64_t place, int64_t pixels) {
  if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(pixels)) [[unlikely]]
    wrong_place(place, pixels);
  return place;
}

// Planes scatter into themselves only: contiguous ones of type T need not be turned.
template <typename T>
void scatter_planes(const ImageArray& grad, const ImageArray& places, const ImageArray& grad_in,
                    const Block& from, const Block& to) {
  const T* g = reinterpret_cast<const T*>(grad.data) + from.offset;
  const int64_t* at = reinterpret_cast<const int64_t*>(places.data) + from.offset;
  T* x = reinterpret_cast<T*>(grad_in.data) + to.offset;
  const int64_t pixels = grad_in.pixels(), count = grad.pixels();
  std::memset(x, 0, static_cast<size_t>(to.lanes * pixels) * sizeof(T));
  for (int64_t plane = 0; plane < to.lanes; ++plane, g += count, at += count, x += pixels)
    for (int64_t i = 0; i < count; ++i) x[checked(at[i], pixels)] += g[i];
}

template <typename T>
void scatter_lanes(const ImageArray& grad, const ImageArray& places, const ImageArray& grad_in,
                   const Block& from, const Block& to) {
  const Lanes<T> g(grad, from), x(grad_in, to);
  const Lanes<int64_t> places_of_lanes(places, from);
  const T* value = g.read();
  const int64_t* at = places_of_lanes.read();
  T* const sums = x.data();
  const int64_t lanes = to.lanes, pixels = grad_in.pixels(), step = x.step();
  x.clear();
  for (int64_t p = 0; p < grad.pixels(); ++p, value += g.step(), at += places_of_lanes.step())
    for (int64_t lane = 0; lane < lanes; ++lane) sums[checked(at[lane], pixels) * step + lane] += value[lane];
  x.write();
}

}  // namespace

void max_pool_backward(const ImageArray& grad, const ImageArray& places, const ImageArray& grad_in) {
  const Blocks blocks(grad_in, grad_in.pixels());
  visit_compute_type(grad_in.type, true, [&]<typename T>() {
    const bool is_plain =
        !grad_in.is_channels_last && grad_in.type == dtype_of<T> && grad.type == dtype_of<T>;
    if (is_direct<T>(grad_in, grad_in)) clear(grad_in);
    blocks.for_each([&](int64_t i) {
      const Block from = blocks.in(grad, i), to = blocks.in(grad_in, i);
      if (is_plain) scatter_planes<T>(grad, places, grad_in, from, to);
      else scatter_lanes<T>(grad, places, grad_in, from, to);
    });
  });
}

}  // namespace weft::cpu
