// What nodes note of their values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/trace.h"
#include "weft/graph/compare.h"
#include "weft/graph/text.h"
#include "weft/passes/shape_prop.h"

namespace weft {
namespace {

constexpr CaptureMode kNoteModes[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

Tensor with_pause(const Tensor& x, const Tensor& y) {
  Tensor product = x * y;
  return product.detach() + product;
}

bool notes_gradient(const GraphModule& g, std::string_view name) {
  return g.graph().find(name)->meta().value.tensor_ref().requires_grad();
}

TEST(NodeNotes, InputsSayWhetherTheyRequireAGradient) {
  const Tensor x = ones({2}).set_requires_grad(), y = ones({2});
  for (CaptureMode mode : kNoteModes) {
    GraphModule g = make_graph(with_pause, {.mode = mode})(x, y);
    EXPECT_TRUE(notes_gradient(g, "arg0_1"));
    EXPECT_FALSE(notes_gradient(g, "arg1_1"));
  }
}

// Above autograd a recorder sees what calls give to the program.
TEST(NodeNotes, ResultsDoSoAsTheProgramSeesThem) {
  const Tensor x = ones({2}).set_requires_grad(), y = ones({2});
  for (CaptureMode mode : kNoteModes) {
    GraphModule g = make_graph(with_pause, {.mode = mode, .pre_dispatch = true})(x, y);
    EXPECT_TRUE(notes_gradient(g, "mul"));
    EXPECT_FALSE(notes_gradient(g, "detach"));
    EXPECT_TRUE(notes_gradient(g, "add"));
    NoGrad none;
    GraphModule plain = make_graph(with_pause, {.mode = mode, .pre_dispatch = true})(x, y);
    EXPECT_TRUE(notes_gradient(plain, "arg0_1"));
    EXPECT_FALSE(notes_gradient(plain, "mul"));
    EXPECT_EQ(difference(g.graph(), plain.graph()), "");
    EXPECT_THAT(difference(g.graph(), plain.graph(), {.notes = true}),
                ::testing::ContainsRegex("'mul': value: .* requires_grad against "));
  }
}

TEST(NodeNotes, AreShownOnRequest) {
  const Tensor x = ones({2}).set_requires_grad(), y = ones({2});
  GraphModule g = make_graph(with_pause)(x, y);
  EXPECT_THAT(readable(g), ::testing::HasSubstr("arg0_1: \"f32[2]\", arg1_1: \"f32[2]\""));
  EXPECT_THAT(readable(g, {.requires_grad = true}),
              ::testing::HasSubstr("arg0_1: \"f32[2] requires_grad\", arg1_1: \"f32[2]\""));
}

TEST(NodeNotes, ShareNothingWithTheProgram) {
  Tensor x = ones({2}).set_requires_grad();
  GraphModule g = make_graph([](const Tensor& t) { return t * 2; })(x);
  x.set_requires_grad(false);
  EXPECT_TRUE(notes_gradient(g, "arg0_1"));
  EXPECT_FALSE(g.graph().find("arg0_1")->meta().value.tensor_ref().is_same(x));
}

TEST(NodeNotes, TracesAndShapePropagationNoteTheSame) {
  const Tensor x = ones({2}).set_requires_grad(), y = ones({2});
  GraphModule traced = trace(with_pause, Value::tuple({x, y})).graph_module();
  GraphModule g = make_graph(with_pause, {.pre_dispatch = true})(x, y);
  ShapeProp(g).propagate({x, y});
  for (const char* name : {"mul", "detach", "add"}) {
    EXPECT_EQ(notes_gradient(traced, name), std::string(name) != "detach") << name;
    EXPECT_EQ(notes_gradient(g, name), std::string(name) != "detach") << name;
  }
}

}  // namespace
}  // namespace weft
