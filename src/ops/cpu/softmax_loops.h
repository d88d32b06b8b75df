#pragma once

#include "ops/cpu/row_loops.h"
#include "ops/cpu/softmax.h"

// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct SoftmaxOf {
  using P = Pack<T, Isa>;
  using R = Row<T, Isa>;
  static constexpr int kLanes = P::kLanes;
  static T lowest() { return -static_cast<T>(__builtin_inf()); }
  static T log_of(T x) { return log(P(x)).v[0]; }

  static T row_maximum(int64_t n, const T* in) {
    P a(lowest()), b(lowest());
    int64_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      a = maximum(a, P::load(in + i));
      b = maximum(b, P::load(in + i + kLanes));
    }
    R::for_each(n - i, [&](auto load, auto) { a = maximum(a, load(in + i, lowest())); });
    return R::lanes_maximum(maximum(a, b));
  }

  static void row(SoftmaxKind kind, int64_t n, const T* in, T* out, T (*round)(T)) {
    // A row of -infinity alone has no finite maximum: 0 / 0 is what the definition gives.
    P shift(row_maximum(n, in));
    if (kind == SoftmaxKind::kLogSoftmax) {
      double total = R::sum(n, [&](int64_t, auto load, int) { return exp(load(in, lowest()) - shift); });
      T sum = static_cast<T>(total);
      T log_sum = log_of(round ? round(sum) : sum);
      P log_total(round ? round(log_sum) : log_sum);
      R::for_each(n, [&](auto load, auto store) { store(out, load(in, 0) - shift - log_total); });
      return;
    }
    double total = R::sum(n, [&](int64_t i, auto load, int count) {
      P e = exp(load(in, lowest()) - shift);
      if (count == kLanes) e.store(out + i);
      else R::store_tail(out + i, e, count);
      return e;
    });
    P factor(static_cast<T>(1 / total));
    R::for_each(n, [&](auto load, auto store) { store(out, load(out, 0) * factor); });
  }

  static void row_backward(SoftmaxKind kind, int64_t n, const T* grad, const T* output, T* grad_in) {
    if (kind == SoftmaxKind::kLogSoftmax) {
      P total(static_cast<T>(R::sum(n, [&](int64_t, auto load, int) { return load(grad, 0); })));
      R::for_each(
          n, [&](auto load, auto store) { store(grad_in, load(grad, 0) - exp(load(output, 0)) * total); });
      return;
    }
    P dot(
        static_cast<T>(R::sum(n, [&](int64_t, auto load, int) { return load(grad, 0) * load(output, 0); })));
    R::for_each(n, [&](auto load, auto store) { store(grad_in, (load(grad, 0) - dot) * load(output, 0)); });
  }

  // The same over columns. Row by row, since rows may lie pages apart: what a pass knows of each column is
  // kept in the scratch, in the nearest cache.
  static void fill(T* values, int64_t width, T x) {
    R::for_each(width, [&](auto, auto store) { store(values, P(x)); });
  }
  // Sums of f(row, load, store) over the rows. Two levels keep the digits of long columns.
  template <typename F>
  [[gnu::always_inline]] static void sum_columns(int64_t n, int64_t width, T* total, T* block, F f) {
    fill(total, width, 0);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t last = first + kBlock < n ? first + kBlock : n;
      fill(block, width, 0);
      for (int64_t r = first; r < last; ++r)
        R::for_each(width, [&](auto load, auto store) { store(block, load(block, 0) + f(r, load, store)); });
      R::for_each(width, [&](auto load, auto store) { store(total, load(total, 0) + load(block, 0)); });
    }
  }
  static constexpr int64_t kBlock = 64;

  static void columns(SoftmaxKind kind, int64_t n, int64_t width, int64_t stride, const T* in, T* out,
                      T* scratch) {
    T *shift = scratch, *total = scratch + width, *block = scratch + 2 * width;
    fill(shift, width, lowest());
    for (int64_t r = 0; r < n; ++r)
      R::for_each(width, [&](auto load, auto store) {
        store(shift, maximum(load(shift, 0), load(in + r * stride, 0)));
      });
    sum_columns(n, width, total, block, [&](int64_t r, auto load, auto store) __attribute__((always_inline)) {
      P e = exp(load(in + r * stride, 0) - load(shift, 0));
      if (kind == SoftmaxKind::kSoftmax) store(out + r * stride, e);
      return e;
    });
    R::for_each(width, [&](auto load, auto store) {
      P sum = load(total, 0);
      store(total, kind == SoftmaxKind::kSoftmax ? P(1) / sum : log(sum) + load(shift, 0));
    });
    for (int64_t r = 0; r < n; ++r) {
      R::for_each(width, [&](auto load, auto store) {
        if (kind == SoftmaxKind::kSoftmax)
          store(out + r * stride, load(out + r * stride, 0) * load(total, 0));
        else store(out + r * stride, load(in + r * stride, 0) - load(total, 0));
      });
    }
  }

  static void columns_backward(SoftmaxKind kind, int64_t n, int64_t width, int64_t stride, const T* grad,
                               const T* output, T* grad_in, T* scratch) {
    T *total = scratch, *block = scratch + width;
    sum_columns(n, width, total, block, [&](int64_t r, auto load, auto) __attribute__((always_inline)) {
      P g = load(grad + r * stride, 0);
      return kind == SoftmaxKind::kSoftmax ? g * load(output + r * stride, 0) : g;
    });
    for (int64_t r = 0; r < n; ++r) {
      R::for_each(width, [&](auto load, auto store) {
        P g = load(grad + r * stride, 0), y = load(output + r * stride, 0), sum = load(total, 0);
        store(grad_in + r * stride, kind == SoftmaxKind::kSoftmax ? (g - sum) * y : g - exp(y) * sum);
      });
    }
  }

  static constexpr SoftmaxLoops<T> kLoops = {row, row_backward, columns, columns_backward};
};

}  // namespace weft::cpu
