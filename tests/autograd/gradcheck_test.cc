// Gradients of complex numbers against finite differences of both parts.
#include "weft/autograd/gradcheck.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"

namespace weft {
namespace {

using autograd::gradcheck;
using autograd::gradgradcheck;
using Tensors = std::vector<Tensor>;

Tensor numbers() {
  return from_data(std::vector<Complex<double>>{{1, 2}, {0.5, -1}, {-0.3, 0.7}}).set_requires_grad();
}

TEST(Gradcheck, TakesComplexInputs) {
  autograd::TensorsFunction cubes = [](const Tensors& in) -> Tensors { return {in[0] * in[0] * in[0]}; };
  gradcheck(cubes, {numbers()});
  gradgradcheck(cubes, {numbers()});
}

TEST(Gradcheck, TakesRealResultsOfComplexInputs) {
  autograd::TensorsFunction magnitudes = [](const Tensors& in) -> Tensors { return {abs(in[0])}; };
  gradcheck(magnitudes, {numbers()});
  gradgradcheck(magnitudes, {numbers()});
}

TEST(Gradcheck, TakesComplexResultsOfRealInputs) {
  Tensor z = numbers().detach();
  autograd::TensorsFunction scaled = [&](const Tensors& in) -> Tensors { return {in[0] * in[0] * z}; };
  gradcheck(scaled, {testing::ramp({3}).set_requires_grad()});
  gradgradcheck(scaled, {testing::ramp({3}).set_requires_grad()});
}

TEST(Gradcheck, NamesThePartThatDiffers) {
  // The conjugate of the right derivative of the square.
  struct Wrong {
    static Tensors apply(const Tensors& in) {
      Tensor factor = 2 * in[0].detach();
      return {conj(factor) * in[0]};
    }
  };
  EXPECT_ERROR(gradcheck(
                   [](const Tensors& in) -> Tensors {
                     Tensor square = in[0].detach() * in[0].detach();
                     return {square + Wrong::apply(in)[0] - Wrong::apply({in[0].detach()})[0]};
                   },
                   {numbers()}),
               "gradcheck: the gradient of input 0 at element 0, real part,");
}

TEST(Gradcheck, WantsWideNumbers) {
  EXPECT_ERROR(gradcheck([](const Tensors& in) -> Tensors { return {in[0] * 2}; },
                         {ones({2}, kComplex64).set_requires_grad()}),
               "finite differences need float64 or complex128");
}

}  // namespace
}  // namespace weft
