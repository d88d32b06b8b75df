// Transforms in any nesting. Each step below turns a function R^3 -> R^3 into another one, and can be taken
// in two ways that must agree: by reverse or forward mode, by a batch or a loop, functionalised or not.
// Random chains of up to four steps are taken both ways.
#include <gtest/gtest.h>

#include <random>

#include "support/tensors.h"
#include "weft/func/functionalize.h"

namespace weft {
namespace {

using func::Fn;
using func::Tensors;
using testing::close;
using testing::ramp;
using testing::vec;

// Both ways of one step.
struct Step {
  const char* name;
  Fn (*one)(const Fn&);
  Fn (*other)(const Fn&);
};

Tensor direction() { return vec({0.3, -0.7, 0.5}); }
Tensor times(const Tensor& matrix, const Tensor& vector) { return (matrix * vector).sum({-1}); }
Fn map(Tensor (*f)(const Fn&, const Tensor&), const Fn& inner) {
  return [f, inner](const Tensors& x) { return Tensors{f(inner, x[0])}; };
}

const Step kSteps[] = {
    {"gradient of the sum",
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) {
             return func::grad([&](const Tensor& t) { return g({t})[0].sum(); })(x);
           },
           f);
     },
     [](const Fn& f) {
       return map([](const Fn& g, const Tensor& x) { return func::jacfwd(g)(x).sum({0}); }, f);
     }},
    {"directional derivative",
     [](const Fn& f) {
       return map([](const Fn& g, const Tensor& x) { return func::jvp(g, {x}, {direction()}).second[0]; }, f);
     },
     [](const Fn& f) {
       return map([](const Fn& g, const Tensor& x) { return times(func::jacrev(g)(x), direction()); }, f);
     }},
    {"pulled-back direction",
     [](const Fn& f) {
       return map([](const Fn& g, const Tensor& x) { return func::vjp(g, {x}).second({direction()})[0]; }, f);
     },
     [](const Fn& f) {
       return map([](const Fn& g,
                     const Tensor& x) { return times(func::jacfwd(g)(x).transpose(0, 1), direction()); },
                  f);
     }},
    {"sum over a batch",
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) {
             Tensor batch = stack({x, x * 0.5, x * -0.25});
             return func::vmap(g)(batch).sum({0});
           },
           f);
     },
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) { return g({x})[0] + g({x * 0.5})[0] + g({x * -0.25})[0]; }, f);
     }},
    {"a batch along the other dim",
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) {
             Tensor batch = stack({x, x + 0.1}, 1);
             return func::vmap(g, {.in_dims = {1}, .out_dims = {1}})(batch).select(1, 1);
           },
           f);
     },
     [](const Fn& f) { return map([](const Fn& g, const Tensor& x) { return g({x + 0.1})[0]; }, f); }},
    {"writes in place",
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) {
             Tensor y = g({x})[0] * 1;
             y.slice(0, 0, 2).mul_(x.slice(0, 1, 3));
             return y;
           },
           f);
     },
     [](const Fn& f) {
       return map(
           [](const Fn& g, const Tensor& x) {
             Tensor y = g({x})[0];
             return cat({y.slice(0, 0, 2) * x.slice(0, 1, 3), y.slice(0, 2, 3)});
           },
           f);
     }},
    {"functionalised", [](const Fn& f) { return func::functionalize(f).fn(); },
     [](const Fn& f) { return f; }},
};

Tensors smooth(const Tensors& x) {
  Tensor mixed = times(vec({0.5, -0.2, 0.1, 0.3, 0.4, -0.6, -0.1, 0.2, 0.7}).view({3, 3}), x[0]);
  Tensor y = sin(mixed) * x[0];
  y.add_(tanh(x[0]));
  return {y};
}

TEST(Nesting, RandomChainsAgreeWhicheverWayEachStepIsTaken) {
  std::mt19937 random(20);
  auto choose = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int trial = 0; trial < 400; ++trial) {
    Fn a = smooth, b = smooth;
    std::string story = "smooth";
    size_t depth = 1 + choose(4);
    for (size_t level = 0; level < depth; ++level) {
      const Step& step = kSteps[choose(std::size(kSteps))];
      bool swapped = choose(2);
      a = swapped ? step.other(a) : step.one(a);
      b = swapped ? step.one(b) : step.other(b);
      story = std::string(step.name) + (swapped ? " [2] of " : " [1] of ") + story;
    }
    Tensor x = ramp({3}, -0.8, 0.9);
    SCOPED_TRACE("trial " + std::to_string(trial) + ": " + story);
    try {
      ASSERT_TRUE(close(a({x})[0], b({x})[0], 1e-8, 1e-10));
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
  }
}

// Every ordered pair of steps, so that no combination depends on chance.
TEST(Nesting, EveryPairAgrees) {
  Tensor x = ramp({3}, -0.8, 0.9);
  for (const Step& outer : kSteps)
    for (const Step& inner : kSteps) {
      Fn a = outer.one(inner.one(smooth)), b = outer.other(inner.other(smooth));
      EXPECT_TRUE(close(a({x})[0], b({x})[0], 1e-8, 1e-10)) << outer.name << " of " << inner.name;
    }
}

}  // namespace
}  // namespace weft
