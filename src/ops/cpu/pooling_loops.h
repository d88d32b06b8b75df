#pragma once

#include "ops/cpu/pooling.h"
#include "ops/cpu/row_loops.h"

// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct PoolOf {
  using P = Pack<T, Isa>;
  using Index = typename SignedOfSize<sizeof(T)>::type;
  using Places = Pack<Index, Isa>;
  using R = Row<T, Isa>;
  static constexpr int kLanes = P::kLanes;
  static constexpr bool kIsReal = P::kCategory == Category::kReal;

  static T lowest(const PoolPlan& plan) {
    if constexpr (kIsReal) return -static_cast<T>(__builtin_inf());
    else return static_cast<T>(plan.lowest);
  }

  // f(lane, count, load, store) for every pack of the lanes; the last may be a part of one. The count of a
  // full pack is a constant, so that copies of it have a fixed size.
  struct FullPack {
    constexpr operator int() const { return kLanes; }  // NOLINT(google-explicit-constructor)
  };
  template <typename F>
  [[gnu::always_inline]] static void for_each_pack(int64_t lanes, F f) {
    int64_t lane = 0;
    for (; lane + kLanes <= lanes; lane += kLanes)
      f(lane, FullPack(), [](const T* p) { return P::load(p); }, [](T* p, P x) { x.store(p); });
    if (lane == lanes) return;
    const int count = static_cast<int>(lanes - lane);
    f(
        lane, count, [count](const T* p) { return R::load_tail(p, count, T(0)); },
        [count](T* p, P x) { R::store_tail(p, x, count); });
  }

  // f(element of the input) for every element of a window.
  template <typename F>
  [[gnu::always_inline]] static void for_each_tap(const PoolPlan& plan, const PoolSpan& rows,
                                                  const PoolSpan& columns, F f) {
    for (int64_t r = rows.first; r < rows.last; r += plan.row_step)
      for (int64_t c = columns.first; c < columns.last; c += plan.column_step) f(r * plan.in_width + c);
  }

  static void store_places(int64_t* p, Places at, int count) {
    typedef int64_t Wide __attribute__((vector_size(kLanes * 8)));
    const Wide wide = __builtin_convertvector(at.v, Wide);
    __builtin_memcpy(p, &wide, static_cast<size_t>(count) * sizeof(int64_t));
  }

  static void max(const PoolPlan& plan, int64_t lanes, const T* in, int64_t in_step, T* out, int64_t out_step,
                  int64_t* places, int64_t places_step) {
    for (int64_t i = 0; i < plan.out_height; ++i)
      for (int64_t j = 0; j < plan.out_width; ++j) {
        const PoolSpan rows = plan.rows[i], columns = plan.columns[j];
        const int64_t start = rows.first * plan.in_width + columns.first, pixel = i * plan.out_width + j;
        for_each_pack(lanes, [&](int64_t lane, auto count, auto load, auto store) {
          P best(lowest(plan));
          Places at(start);
          for_each_tap(plan, rows, columns, [&](int64_t element) {
            const P x = load(in + element * in_step + lane);
            auto better = x > best;
            if constexpr (kIsReal) better = better | (x != x);
            best = where(better, x, best);
            at = where(typename Places::Mask{better.v}, Places(element), at);
          });
          store(out + pixel * out_step + lane, best);
          store_places(places + pixel * places_step + lane, at, count);
        });
      }
  }

  static int64_t divisor(const PoolPlan& plan, int64_t i, int64_t j) {
    return plan.divisor != 0 ? plan.divisor : plan.rows[i].count * plan.columns[j].count;
  }
  // Integers round towards zero.
  static P divide(P x, int64_t by) {
    if constexpr (kIsReal) {
      return x / P(by);
    } else {
      for (int k = 0; k < kLanes; ++k) x.v[k] = static_cast<T>(x.v[k] / static_cast<T>(by));
      return x;
    }
  }

  static void average(const PoolPlan& plan, int64_t lanes, const T* in, int64_t in_step, T* out,
                      int64_t out_step) {
    for (int64_t i = 0; i < plan.out_height; ++i)
      for (int64_t j = 0; j < plan.out_width; ++j)
        for_each_pack(lanes, [&](int64_t lane, auto, auto load, auto store) {
          P sum(0);
          for_each_tap(plan, plan.rows[i], plan.columns[j],
                       [&](int64_t element) { sum = sum + load(in + element * in_step + lane); });
          store(out + (i * plan.out_width + j) * out_step + lane, divide(sum, divisor(plan, i, j)));
        });
  }

  static void average_backward(const PoolPlan& plan, int64_t lanes, const T* grad, int64_t grad_step,
                               T* grad_in, int64_t in_step) {
    for (int64_t i = 0; i < plan.out_height; ++i)
      for (int64_t j = 0; j < plan.out_width; ++j)
        for_each_pack(lanes, [&](int64_t lane, auto, auto load, auto store) {
          const P share =
              divide(load(grad + (i * plan.out_width + j) * grad_step + lane), divisor(plan, i, j));
          for_each_tap(plan, plan.rows[i], plan.columns[j], [&](int64_t element) {
            T* const to = grad_in + element * in_step + lane;
            store(to, load(to) + share);
          });
        });
  }

  static constexpr PoolLoops<T> kLoops = {&max, &average, &average_backward};
};

}  // namespace weft::cpu
