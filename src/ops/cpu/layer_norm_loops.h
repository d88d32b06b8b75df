#pragma once

#include "ops/cpu/layer_norm.h"
#include "ops/cpu/row_loops.h"

// Included by the files of instruction sets only.
namespace weft::cpu {

template <typename T, typename Isa>
struct LayerNormOf {
  using P = Pack<T, Isa>;
  using R = Row<T, Isa>;

  static void row(int64_t n, const T* in, const T* weight, const T* bias, T eps, T* out, T* mean_out,
                  T* rstd_out) {
    double mean = R::sum(n, [&](int64_t, auto load, int) { return load(in, 0); }) / static_cast<double>(n);
    T center = static_cast<T>(mean);
    P shift(center);
    // Padding with the mean adds nothing to the squares.
    double squares = R::sum(n, [&](int64_t, auto load, int) {
      P d = load(in, center) - shift;
      return d * d;
    });
    P rstd = P(1) / sqrt(P(static_cast<T>(squares / static_cast<double>(n))) + P(eps));
    if (weight && bias)
      R::for_each(n, [&](auto load, auto store) {
        store(out, multiply_add((load(in, 0) - shift) * rstd, load(weight, 0), load(bias, 0)));
      });
    else
      R::for_each(n, [&](auto load, auto store) {
        P y = (load(in, 0) - shift) * rstd;
        if (weight) y = y * load(weight, 0);
        if (bias) y = y + load(bias, 0);
        store(out, y);
      });
    *mean_out = center;
    *rstd_out = rstd.v[0];
  }

  // With g = grad * weight and h the normalised input: grad_in = rstd (g - mean(g) - h mean(g h)).
  static void row_backward(int64_t n, const T* grad, const T* in, const T* weight, T mean, T rstd, T* grad_in,
                           T* weight_sum, T* bias_sum) {
    P shift(mean), scale(rstd);
    if (weight_sum)
      R::for_each(n, [&](auto load, auto store) {
        P h = (load(in, 0) - shift) * scale;
        store(weight_sum, multiply_add(load(grad, 0), h, load(weight_sum, 0)));
      });
    if (bias_sum)
      R::for_each(n, [&](auto load, auto store) { store(bias_sum, load(bias_sum, 0) + load(grad, 0)); });
    if (!grad_in) return;
    auto weighted = [&](auto load) { return weight ? load(grad, 0) * load(weight, 0) : load(grad, 0); };
    double total = R::sum(n, [&](int64_t, auto load, int) { return weighted(load); });
    double dot = R::sum(n, [&](int64_t, auto load, int) { return weighted(load) * (load(in, 0) - shift); });
    double count = static_cast<double>(n);
    P mean_g(static_cast<T>(total / count)), slope(static_cast<T>(dot / count * rstd * rstd));
    R::for_each(n, [&](auto load, auto store) {
      store(grad_in, scale * (weighted(load) - mean_g - (load(in, 0) - shift) * slope));
    });
  }

  static constexpr LayerNormLoops<T> kLoops = {row, row_backward};
};

}  // namespace weft::cpu
