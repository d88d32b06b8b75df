// Softmax, layer norm and running sums against plain loops in long double.
#include <gtest/gtest.h>

#include "ops/cpu/cumulative.h"
#include "ops/cpu/layer_norm.h"
#include "ops/cpu/softmax.h"
#include "raw_array.h"
#include "weft/base/parallel.h"

namespace weft::cpu::testing {
namespace {

using Real = long double;
using enum SoftmaxKind;

RawArray random_values(DType t, std::vector<int64_t> sizes, unsigned seed) {
  std::mt19937 rng(seed);
  RawArray x = RawArray::contiguous(t, std::move(sizes));
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, random_value(t, rng));
  return x;
}
Real epsilon(DType t) {
  return t == DType::kFloat64    ? 0x1p-52L
         : t == DType::kFloat16  ? 0x1p-10L
         : t == DType::kBFloat16 ? 0x1p-7L
                                 : 0x1p-23L;
}
const DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
const SoftmaxShape kShapes[] = {{1, 1, 1}, {3, 7, 1},   {5, 64, 1},   {2, 1000, 1},
                                {2, 9, 3}, {1, 40, 70}, {3, 130, 65}, {1, 3, 1100}};

std::vector<Real> line(const RawArray& x, SoftmaxShape s, int64_t outer, int64_t inner) {
  std::vector<Real> result;
  for (int64_t k = 0; k < s.n; ++k) result.push_back(x.get((outer * s.n + k) * s.inner + inner).real());
  return result;
}
template <typename F>
void for_each_line(SoftmaxShape s, const F& f) {
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) f(o, i);
}

TEST(Softmax, AgreesWithLongDouble) {
  for (IsaLevel isa : available_isas())
    for (DType t : kTypes)
      for (SoftmaxShape s : kShapes)
        for (SoftmaxKind kind : {kSoftmax, kLogSoftmax}) {
          UseIsa use(isa);
          RawArray x = random_values(t, {s.outer, s.n, s.inner}, 1), y = x;
          softmax(kind, s, x.data(), t, y.data(), t);
          for_each_line(s, [&](int64_t o, int64_t i) {
            std::vector<Real> in = line(x, s, o, i), out = line(y, s, o, i);
            Real total = 0;
            for (Real v : in) total += std::exp(v);
            for (int64_t k = 0; k < s.n; ++k) {
              Real want = kind == kSoftmax ? std::exp(in[k]) / total : in[k] - std::log(total);
              Real smallest = t == DType::kFloat16 ? 0x1p-24L : 0;  // subnormal results
              ASSERT_LE(std::fabs(out[k] - want),
                        6 * epsilon(t) * std::max(std::fabs(want), kind == kSoftmax ? 0 : 1.0L) + smallest)
                  << dtype_name(t) << " n " << s.n << " inner " << s.inner;
            }
          });
        }
}

TEST(Softmax, MayWriteOverItsInput) {
  for (IsaLevel isa : available_isas())
    for (SoftmaxShape s : kShapes)
      for (SoftmaxKind kind : {kSoftmax, kLogSoftmax}) {
        UseIsa use(isa);
        RawArray x = random_values(DType::kFloat32, {s.outer, s.n, s.inner}, 6), y = x, grad = x, dx = x;
        softmax(kind, s, x.data(), x.dtype, y.data(), y.dtype);
        softmax_backward(kind, s, grad.data(), y.data(), y.dtype, dx.data(), dx.dtype);
        softmax(kind, s, x.data(), x.dtype, x.data(), x.dtype);
        EXPECT_EQ(x.bits(), y.bits());
        softmax_backward(kind, s, grad.data(), y.data(), y.dtype, grad.data(), grad.dtype);
        EXPECT_EQ(grad.bits(), dx.bits());
      }
}

// Tiles are as wide as the number of threads allows: no column may notice.
TEST(Softmax, OverColumnsHasTheSameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  for (SoftmaxShape s : {SoftmaxShape{1, 130, 1100}, SoftmaxShape{3, 70, 200}}) {
    RawArray x = random_values(DType::kFloat32, {s.outer, s.n, s.inner}, 5), grad = x;
    auto run = [&](int count) {
      set_num_threads(count);
      RawArray y = x, grad_in = x;
      softmax(kSoftmax, s, x.data(), x.dtype, y.data(), y.dtype);
      softmax_backward(kSoftmax, s, grad.data(), y.data(), x.dtype, grad_in.data(), x.dtype);
      return y.bits() + grad_in.bits();
    };
    const std::string alone = run(1);
    for (int count : {2, 3, 16}) EXPECT_EQ(run(count), alone) << count << " threads";
  }
  set_num_threads(threads);
}

TEST(Softmax, HalfInFloatOut) {
  for (SoftmaxShape s : kShapes) {
    RawArray x = random_values(DType::kFloat16, {s.outer, s.n, s.inner}, 2);
    RawArray y = RawArray::contiguous(DType::kFloat32, x.sizes);
    softmax(kSoftmax, s, x.data(), x.dtype, y.data(), y.dtype);
    for_each_line(s, [&](int64_t o, int64_t i) {
      Real total = 0, sum = 0;
      for (Real v : line(x, s, o, i)) total += std::exp(v);
      for (Real v : line(y, s, o, i)) sum += v;
      EXPECT_NEAR(static_cast<double>(sum), 1, 1e-5);
      EXPECT_NEAR(static_cast<double>(line(y, s, o, i)[0]),
                  static_cast<double>(std::exp(line(x, s, o, i)[0]) / total), 1e-6);
    });
  }
}

TEST(Softmax, ExtremeRows) {
  Real inf = std::numeric_limits<Real>::infinity();
  RawArray x = RawArray::contiguous(DType::kFloat32, {3, 4}), y = x;
  for (int i = 0; i < 4; ++i)
    x.set(i, -inf), x.set(4 + i, i == 2 ? 1e30L : -1e30L), x.set(8 + i, i == 1 ? -inf : 0);
  softmax(kSoftmax, {3, 4, 1}, x.data(), x.dtype, y.data(), y.dtype);
  EXPECT_TRUE(std::isnan(y.get(0).real()));
  EXPECT_EQ(y.get(6), Number(1));
  EXPECT_EQ(y.get(9), Number(0));
  EXPECT_NEAR(static_cast<double>(y.get(8).real()), 1.0 / 3, 1e-6);
}

TEST(Softmax, BackwardAgreesWithLongDouble) {
  for (IsaLevel isa : available_isas())
    for (DType t : kTypes)
      for (SoftmaxShape s : kShapes)
        for (SoftmaxKind kind : {kSoftmax, kLogSoftmax}) {
          UseIsa use(isa);
          RawArray x = random_values(t, {s.outer, s.n, s.inner}, 3), y = x, g = random_values(t, x.sizes, 4),
                   dx = x;
          softmax(kind, s, x.data(), t, y.data(), t);
          softmax_backward(kind, s, g.data(), y.data(), t, dx.data(), t);
          for_each_line(s, [&](int64_t o, int64_t i) {
            std::vector<Real> out = line(y, s, o, i), grad = line(g, s, o, i), got = line(dx, s, o, i);
            Real total = 0, size = 0;
            for (int64_t k = 0; k < s.n; ++k) {
              Real term = kind == kSoftmax ? grad[k] * out[k] : grad[k];
              total += term, size += std::fabs(term);
            }
            for (int64_t k = 0; k < s.n; ++k) {
              Real want = kind == kSoftmax ? (grad[k] - total) * out[k] : grad[k] - std::exp(out[k]) * total;
              ASSERT_LE(std::fabs(got[k] - want),
                        6 * epsilon(t) * (4 + size * std::exp(out[k] > 0 ? 0 : out[k])))
                  << dtype_name(t);
            }
          });
        }
}

struct Norm {
  RawArray x, weight, bias, y, mean, rstd;
};
Norm run_layer_norm(DType t, int64_t rows, int64_t n, bool affine) {
  Norm r = {random_values(t, {rows, n}, 5),  random_values(t, {n}, 6),
            random_values(t, {n}, 7),        RawArray::contiguous(t, {rows, n}),
            RawArray::contiguous(t, {rows}), RawArray::contiguous(t, {rows})};
  LayerNormArgs args = {rows,
                        n,
                        t,
                        t,
                        t,
                        1e-5,
                        r.x.data(),
                        affine ? r.weight.data() : nullptr,
                        affine ? r.bias.data() : nullptr};
  layer_norm(args, r.y.data(), r.mean.data(), r.rstd.data());
  return r;
}

TEST(LayerNorm, AgreesWithLongDouble) {
  for (IsaLevel isa : available_isas())
    for (DType t : kTypes)
      for (int64_t n : {1, 5, 8, 100, 1027})
        for (bool affine : {false, true}) {
          UseIsa use(isa);
          Norm r = run_layer_norm(t, 6, n, affine);
          for (int64_t row = 0; row < 6; ++row) {
            Real mean = 0, var = 0;
            for (int64_t k = 0; k < n; ++k) mean += r.x.get(row * n + k).real() / n;
            for (int64_t k = 0; k < n; ++k) var += std::pow(r.x.get(row * n + k).real() - mean, 2) / n;
            Real rstd = 1 / std::sqrt(var + 1e-5L);
            EXPECT_LE(std::fabs(r.mean.get(row).real() - mean), 8 * epsilon(t));
            EXPECT_LE(std::fabs(r.rstd.get(row).real() / rstd - 1), 8 * epsilon(t));
            for (int64_t k = 0; k < n; ++k) {
              Real want = (r.x.get(row * n + k).real() - mean) * rstd;
              if (affine) want = want * r.weight.get(k).real() + r.bias.get(k).real();
              ASSERT_LE(std::fabs(r.y.get(row * n + k).real() - want), 60 * epsilon(t))
                  << dtype_name(t) << " n " << n;
            }
          }
        }
}

TEST(LayerNorm, BackwardAgreesWithLongDouble) {
  for (IsaLevel isa : available_isas())
    for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16})
      for (auto [rows, n] : {std::pair<int64_t, int64_t>{4, 5}, {300, 33}, {2, 1027}}) {
        UseIsa use(isa);
        Norm r = run_layer_norm(t, rows, n, true);
        RawArray g = random_values(t, {rows, n}, 8), dx = g, dw = r.weight, db = r.bias;
        LayerNormArgs args = {rows, n, t, t, t, 1e-5, r.x.data(), r.weight.data(), r.bias.data()};
        layer_norm_backward(args, g.data(), r.mean.data(), r.rstd.data(), {dx.data(), dw.data(), db.data()});
        std::vector<Real> weight_grad(n), bias_grad(n);
        Real eps = epsilon(t);
        for (int64_t row = 0; row < rows; ++row) {
          Real mean = r.mean.get(row).real(), rstd = r.rstd.get(row).real(), total = 0, dot = 0;
          for (int64_t k = 0; k < n; ++k) {
            Real grad = g.get(row * n + k).real(), h = (r.x.get(row * n + k).real() - mean) * rstd;
            weight_grad[k] += grad * h, bias_grad[k] += grad;
            total += grad * r.weight.get(k).real(), dot += grad * r.weight.get(k).real() * h;
          }
          for (int64_t k = 0; k < n; ++k) {
            Real h = (r.x.get(row * n + k).real() - mean) * rstd;
            Real want = rstd * (g.get(row * n + k).real() * r.weight.get(k).real() - total / n - h * dot / n);
            ASSERT_LE(std::fabs(dx.get(row * n + k).real() - want), 200 * eps) << dtype_name(t);
          }
        }
        for (int64_t k = 0; k < n; ++k) {
          ASSERT_LE(std::fabs(dw.get(k).real() - weight_grad[k]), 20 * eps * (rows + 10));
          ASSERT_LE(std::fabs(db.get(k).real() - bias_grad[k]), 20 * eps * (rows + 10));
        }
      }
}

TEST(CumSum, AgreesWithLongDouble) {
  for (DType t : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kInt64,
                  DType::kComplex64, DType::kComplex128})
    for (SoftmaxShape s : {SoftmaxShape{1, 1, 1}, {9, 100, 1}, {2, 30, 5}, {1, 40, 300}}) {
      RawArray x = random_values(t, {s.outer, s.n, s.inner}, 9), y = x;
      cumsum(s.outer, s.n, s.inner, x.data(), y.data(), t);
      for_each_line(s, [&](int64_t o, int64_t i) {
        Number sum = 0;
        for (int64_t k = 0; k < s.n; ++k) {
          int64_t at = (o * s.n + k) * s.inner + i;
          sum += x.get(at);
          Real eps = is_integer_like(t) ? 0 : is_complex(t) ? epsilon(real_type(t)) : epsilon(t);
          ASSERT_LE(std::abs(y.get(at) - sum), 2 * eps * (std::abs(sum) + 1) + 0x1p-52L * 4 * k)
              << dtype_name(t);
        }
      });
    }
}

TEST(Rows, SameBitsForAnyNumberOfThreads) {
  int before = num_threads();
  RawArray x = random_values(DType::kFloat32, {400, 300}, 10), w = random_values(DType::kFloat32, {300}, 11);
  std::vector<std::string> first;
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    RawArray y = x, z = x, mean = RawArray::contiguous(x.dtype, {400}), rstd = mean, dx = x, dw = w, db = w,
             c = x;
    softmax(kSoftmax, {400, 300, 1}, x.data(), x.dtype, y.data(), x.dtype);
    softmax(kLogSoftmax, {1, 400, 300}, x.data(), x.dtype, z.data(), x.dtype);
    LayerNormArgs args = {400, 300, x.dtype, x.dtype, x.dtype, 1e-5, x.data(), w.data(), w.data()};
    layer_norm(args, c.data(), mean.data(), rstd.data());
    layer_norm_backward(args, y.data(), mean.data(), rstd.data(), {dx.data(), dw.data(), db.data()});
    std::vector<std::string> bits = {y.bits(), z.bits(), c.bits(), dx.bits(), dw.bits(), db.bits()};
    if (threads == 1) first = bits;
    EXPECT_EQ(bits, first);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace weft::cpu::testing
