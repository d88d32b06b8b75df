// Exported programs exported again: saving what was loaded and exported changes nothing any more, and
// gradients go through a program as through the module that it was made of, to any order.
#include <gtest/gtest.h>

#include "weft/autograd/autograd.h"
#include "weft/export/export_program.h"
#include "weft/io/pt2.h"
#include "weft/nn/layers.h"
#include "weft/ops/close.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

struct Net : nn::Module {
  nn::Linear in = child("in", nn::Linear(4, 8));
  nn::BatchNorm1d norm = child("norm", nn::BatchNorm1d(8));
  nn::Linear out = child("out", nn::Linear(8, 2));
  Tensor forward(const Tensor& x) { return out(tanh(norm(in(x)))); }
  WEFT_ARGS(x)
};

Net evaluated() {
  Net net;
  net.eval();
  return net;
}
ExportOptions any_batch() { return {.dynamic_shapes = {{"x", {{0, Dim("batch", {.min = 2, .max = 100})}}}}}; }

// A size that is declared as 4*quarter + 1 tells the quarter, which no other size is.
struct Quarters : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt quarter = (x.sym_size(0) - 1) / 4;
    return x + zeros({quarter, 3}).sum() + ones({quarter + 2}).sum();
  }
  WEFT_ARGS(x)
};

TEST(ReExport, SymbolsAreReadOffTheSizesThatTheyAreAPartOf) {
  const auto size = 4 * Dim("quarter", {.min = 1, .max = 9}) + 1;
  const ExportedProgram program =
      export_program(Quarters(), {ones({13, 2})}, {.dynamic_shapes = {{"x", {{0, size}}}}});
  for (const ExportedProgram& one :
       {program, program.run_decompositions(), parse_pt2(pt2_bytes(program), "again")}) {
    const Tensor x = randn({21, 2});
    assert_close(one.module()(x), x + 7);
  }
}

TEST(ReExport, IsAFixedPointOfSavingAndLoading) {
  const ValueList example = {randn({3, 4})};
  for (const bool training : {true, false}) {
    auto exported = [&](const auto& module) {
      return training ? export_for_training(module, example, any_batch())
                      : export_program(module, example, any_batch());
    };
    const std::string first = pt2_bytes(exported(evaluated()));
    const std::string again = pt2_bytes(exported(parse_pt2(first, "first").module()));
    const std::string third = pt2_bytes(exported(parse_pt2(again, "again").module()));
    EXPECT_EQ(again, third) << "training: " << training;
    const Tensor x = randn({7, 4});
    assert_close(parse_pt2(third, "third").module()(x), parse_pt2(first, "first").module()(x));
  }
}

// The gradient of the squared norm of a gradient.
Tensor second_gradient(const Tensor& loss, const Tensor& x) {
  const Tensor first = autograd::grad({loss}, {x}, {}, {.create_graph = true})[0];
  return autograd::grad({(first * first).sum()}, {x})[0];
}

TEST(ReExport, GradientsOfSecondOrderAreThoseOfTheModule) {
  Net net = evaluated();
  const Tensor start = randn({5, 4});
  auto of = [&](auto&& f) {
    const Tensor x = start.clone().set_requires_grad();
    return second_gradient(f(x).sin().sum(), x);
  };
  const Tensor wanted = of([&](const Tensor& x) { return net(x); });
  EXPECT_GT(wanted.abs().sum().item().to_double(), 0);
  for (const ExportedProgram& program :
       {export_for_training(net, {start}, any_batch()), export_program(net, {start}, any_batch()),
        export_for_training(net, {start}, any_batch()).run_decompositions()}) {
    const GraphModule module = program.module();
    assert_close(of([&](const Tensor& x) { return module(x); }), wanted);
    const GraphModule loaded = parse_pt2(pt2_bytes(program), "saved").module();
    assert_close(of([&](const Tensor& x) { return loaded(x); }), wanted);
  }
}

// What throws in the middle leaves nothing behind.
struct Throws : nn::Module {
  Tensor total = buffer("total", zeros({}));
  bool fails = true;
  Tensor forward(const Tensor& x) {
    total.add_(1);
    if (fails) throw std::runtime_error("out of luck");
    return x + total;
  }
  WEFT_ARGS(x)
};

TEST(ReExport, WorksAfterAForwardThatThrew) {
  Throws module;
  const Tensor x = randn({3});
  EXPECT_THROW(export_program(module, {x}), std::runtime_error);
  assert_close(module.total, zeros({}));
  module.fails = false;
  const ExportedProgram program = export_program(module, {x});
  assert_close(module.total, zeros({}));
  assert_close(program.module()(x), x + 1);
}

TEST(ReExport, LeavesNothingWhereAFileCannotBeWritten) {
  const ExportedProgram program = export_program(evaluated(), {randn({3, 4})});
  EXPECT_THROW(save_pt2(program, "/nowhere/at/all/net.pt2"), Error);
}

}  // namespace
}  // namespace weft
