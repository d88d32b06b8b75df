#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/nn/clip_grad.h"

namespace weft {
namespace {

using testing::close;
using testing::vec;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The numbers of this file are PyTorch 2.13's.
struct Gradients {
  Tensor a = vec({0, 0, 0}).set_requires_grad(), b = vec({0, 0}).set_requires_grad();
  Tensor without = vec({0}).set_requires_grad();
  Gradients() {
    a.set_grad(vec({1, -2, 3}));
    b.set_grad(vec({4, 0.5}));
  }
  std::vector<Tensor> parameters() const { return {a, b, without}; }
};

TEST(ClipGradNorm, ScalesToTheNormOfAllGradients) {
  struct Case {
    double norm_type, norm;
    std::vector<double> a, b;
  };
  for (const Case& c : {Case{2,
                             5.5,
                             {0.18181814876033658, -0.36363629752067317, 0.5454544462810098},
                             {0.7272725950413463, 0.09090907438016829}},
                        Case{1,
                             10.5,
                             {0.09523808616780133, -0.19047617233560266, 0.285714258503404},
                             {0.3809523446712053, 0.047619043083900664}},
                        Case{kInfinity,
                             4,
                             {0.24999993750001562, -0.49999987500003124, 0.7499998125000469},
                             {0.9999997500000625, 0.12499996875000781}},
                        Case{3,
                             4.643522023687861,
                             {0.215353729247972, -0.430707458495944, 0.646061187743916},
                             {0.861414916991888, 0.107676864623986}}}) {
    Gradients g;
    Tensor norm = nn::clip_grad_norm_(g.parameters(), 1, {.norm_type = c.norm_type});
    EXPECT_TRUE(close(norm, full({}, c.norm, kFloat64), 1e-12)) << c.norm_type;
    EXPECT_TRUE(close(g.a.grad(), vec(c.a), 1e-12)) << c.norm_type;
    EXPECT_TRUE(close(g.b.grad(), vec(c.b), 1e-12)) << c.norm_type;
  }
}

TEST(ClipGradNorm, LeavesSmallOnesAsTheyAre) {
  Gradients g;
  EXPECT_TRUE(close(nn::clip_grad_norm_(g.parameters(), 100), full({}, 5.5, kFloat64), 1e-12));
  EXPECT_TRUE(close(g.a.grad(), vec({1, -2, 3}), 0, 0));
  EXPECT_FALSE(g.without.grad().defined());
  EXPECT_TRUE(close(nn::clip_grad_norm_({g.without}, 1), zeros({}), 0, 0));
}

TEST(ClipGradNorm, RefusesANormThatIsNotFiniteIfAsked) {
  Gradients g;
  g.a.set_grad(vec({1, kInfinity, 0}));
  EXPECT_ERROR(nn::clip_grad_norm_(g.parameters(), 1, {.error_if_nonfinite = true}),
               "the norm of order 2 of the gradients is inf, so it cannot be clipped");
  EXPECT_TRUE(close(g.b.grad(), vec({4, 0.5}), 0, 0));
  nn::clip_grad_norm_(g.parameters(), 1);
  EXPECT_TRUE(close(g.b.grad(), vec({0, 0}), 0, 0));
}

TEST(ClipGradValue, BringsElementsIntoTheRange) {
  Gradients g;
  nn::clip_grad_value_(g.parameters(), 1.5);
  EXPECT_TRUE(close(g.a.grad(), vec({1, -1.5, 1.5}), 0, 0));
  EXPECT_TRUE(close(g.b.grad(), vec({1.5, 0.5}), 0, 0));
}

}  // namespace
}  // namespace weft
