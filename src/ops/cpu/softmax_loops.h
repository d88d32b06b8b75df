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

  // The same over columns: `scratch` holds the maxima and the sums.
  static void columns(SoftmaxKind kind, int64_t n, int64_t width, int64_t stride, const T* in, T* out,
                      T* scratch) {
    T *shift = scratch, *total = scratch + width;
    R::for_each(width, [&](auto load, auto store) {
      P most(lowest());
      for (int64_t r = 0; r < n; ++r) most = maximum(most, load(in + r * stride, 0));
      store(shift, most);
    });
    R::for_each(width, [&](auto load, auto store) {
      P most = load(shift, 0), sum(0), block(0);
      for (int64_t r = 0; r < n; ++r) {
        P e = exp(load(in + r * stride, 0) - most);
        if (kind == SoftmaxKind::kSoftmax) store(out + r * stride, e);
        block = block + e;
        if (r % 64 == 63) {  // two levels keep the digits of long columns
          sum = sum + block;
          block = P(0);
        }
      }
      sum = sum + block;
      store(total, kind == SoftmaxKind::kSoftmax ? P(1) / sum : log(sum) + most);
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
    R::for_each(width, [&](auto load, auto store) {
      P sum(0), block(0);
      for (int64_t r = 0; r < n; ++r) {
        P g = load(grad + r * stride, 0);
        if (kind == SoftmaxKind::kSoftmax) g = g * load(output + r * stride, 0);
        block = block + g;
        if (r % 64 == 63) {
          sum = sum + block;
          block = P(0);
        }
      }
      store(scratch, sum + block);
    });
    for (int64_t r = 0; r < n; ++r) {
      R::for_each(width, [&](auto load, auto store) {
        P g = load(grad + r * stride, 0), y = load(output + r * stride, 0), total = load(scratch, 0);
        store(grad_in + r * stride, kind == SoftmaxKind::kSoftmax ? (g - total) * y : g - exp(y) * total);
      });
    }
  }

  static constexpr SoftmaxLoops<T> kLoops = {row, row_backward, columns, columns_backward};
};

}  // namespace weft::cpu
