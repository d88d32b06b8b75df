// The script view of modules: attributes, scopes, and calls of child modules, as PyTorch 2.13 prints them for
// the same programs. PyTorch writes where classes come from (__torch__.torch.nn.modules.linear.Linear) and
// numbers classes of one name; that is left out of its text here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/hand_written.h"
#include "graph/support/script_text.h"
#include "weft/core/from_data.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_like;
using testing::HandWritten;
using ::testing::HasSubstr;
using ::testing::Not;

using testing::square;
Tensor parameter(SymIntSpan sizes) { return ones(sizes).set_requires_grad(); }

Value linear(HandWritten& f, const std::string& path, const Value& x, SymIntSpan sizes) {
  HandWritten::Inside inside(f, path, "Linear");
  Value weight = f.attribute(path + ".weight", parameter(sizes));
  Value bias = f.attribute(path + ".bias", parameter({sizes[0]}));
  return f.call("aten::linear", {x, weight, bias});
}

ScriptGraph with_calls(const GraphModule& module, const std::string& class_name) {
  return script_view(module, {.inline_calls = false, .self_type = "__torch__." + class_name});
}
ScriptGraph inlined(const GraphModule& module, const std::string& class_name) {
  return script_view(module, {.self_type = "__torch__." + class_name});
}
// The method of a call inside, by the path of its module and its name.
const ScriptGraph& method(const ScriptGraph& graph, const std::string& path,
                          const std::string& name = "forward") {
  for (const auto& callee : graph.callees()) {
    if (callee->path() == path && callee->name() == name) return *callee;
    if (path.starts_with(callee->path() + ".")) return method(*callee, path, name);
  }
  throw std::runtime_error("no method " + path + "." + name);
}

// --- attributes and scopes -------------------------------------------------------------------------------

GraphModule two_layers() {
  HandWritten f;
  f.is_module("Net");
  Value x = f.input("x", square());
  Value hidden = f.named("input", f.call("aten::relu", {linear(f, "fc1", x, {3, 2})}));
  return f.returns(linear(f, "fc2", hidden, {2, 3}));
}

TEST(ScriptModules, CallsAreOpenedUp) {
  ScriptGraph graph = inlined(two_layers(), "Net");
  EXPECT_EQ(testing::renumbered(graph.to_string()), testing::renumbered(R"(graph(%self.1 : __torch__.Net,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %fc2 : __torch__.Linear = prim::GetAttr[name="fc2"](%self.1)
  %fc1 : __torch__.Linear = prim::GetAttr[name="fc1"](%self.1)
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%fc1)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%fc1)
  %9 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::linear(%x, %weight.1, %bias.1), scope: __module.fc1
  %input : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::relu(%9)
  %bias : Tensor = prim::GetAttr[name="bias"](%fc2)
  %weight : Tensor = prim::GetAttr[name="weight"](%fc2)
  %12 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%input, %weight, %bias), scope: __module.fc2
  return (%12)
)"));
  EXPECT_TRUE(graph.callees().empty());
}

TEST(ScriptModules, CallsOfChildren) {
  GraphModule module = two_layers();
  ScriptGraph graph = with_calls(module, "Net");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Net,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %fc2 : __torch__.Linear = prim::GetAttr[name="fc2"](%self.1)
  %fc1 : __torch__.Linear = prim::GetAttr[name="fc1"](%self.1)
  %27 : Tensor = prim::CallMethod[name="forward"](%fc1, %x)
  %input : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::relu(%27)
  %28 : Tensor = prim::CallMethod[name="forward"](%fc2, %input)
  return (%28)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  fc2 = self.fc2
  fc1 = self.fc1
  input = torch.relu((fc1).forward(x, ))
  return (fc2).forward(input, )
)");
  expect_like(method(graph, "fc1"), R"(
graph(%self.3 : __torch__.Linear,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%self.3)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%self.3)
  %3 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::linear(%x, %weight.1, %bias.1), scope: __module.fc1
  return (%3)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  return torch.linear(x, weight, bias)
)");
  EXPECT_EQ(graph.nodes()[2]->callee, &method(graph, "fc1"));
  EXPECT_EQ(graph.nodes()[4]->callee, &method(graph, "fc2"));
}

TEST(ScriptModules, CallsInsideCalls) {
  HandWritten f;
  f.is_module("Seq");
  Value x = f.input("x", square()), result;
  {
    HandWritten::Inside sequential(f, "seq", "Sequential");
    Value hidden = linear(f, "seq.0", x, {3, 2});
    {
      HandWritten::Inside relu(f, "seq.1", "ReLU");
      hidden = f.call("aten::relu", {hidden});
    }
    result = linear(f, "seq.2", hidden, {2, 3});
  }
  Value scaled = f.call("aten::mul.Tensor", {result, f.attribute("p", parameter({2}))});
  GraphModule module = f.returns(f.call("aten::add.Tensor", {scaled, f.attribute("b", ones({2}))}));
  ScriptGraph graph = with_calls(module, "Seq");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Seq,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %b : Tensor = prim::GetAttr[name="b"](%self.1)
  %p : Tensor = prim::GetAttr[name="p"](%self.1)
  %seq : __torch__.Sequential = prim::GetAttr[name="seq"](%self.1)
  %46 : Tensor = prim::CallMethod[name="forward"](%seq, %x)
  %25 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%46, %p)
  %26 : int = prim::Constant[value=1]()
  %27 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%25, %b, %26)
  return (%27)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  b = self.b
  p = self.p
  seq = self.seq
  _0 = torch.add(torch.mul((seq).forward(x, ), p), b)
  return _0
)");
  expect_like(method(graph, "seq"), R"(
graph(%self.3 : __torch__.Sequential,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %_2 : __torch__.Linear = prim::GetAttr[name="2"](%self.3)
  %_1 : __torch__.ReLU = prim::GetAttr[name="1"](%self.3)
  %_0 : __torch__.Linear = prim::GetAttr[name="0"](%self.3)
  %8 : Tensor = prim::CallMethod[name="forward"](%_0, %x)
  %9 : Tensor = prim::CallMethod[name="forward"](%_1, %8)
  %10 : Tensor = prim::CallMethod[name="forward"](%_2, %9)
  return (%10)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  _2 = getattr(self, "2")
  _1 = getattr(self, "1")
  _0 = getattr(self, "0")
  _3 = (_2).forward((_1).forward((_0).forward(x, ), ), )
  return _3
)");
  expect_like(method(graph, "seq.1"), R"(
graph(%self.7 : __torch__.ReLU,
      %1 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)):
  %input : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::relu(%1), scope: __module.seq/__module.seq.1
  return (%input)
)",
              R"(
def forward(self,
    argument_1: Tensor) -> Tensor:
  return torch.relu(argument_1)
)");
  expect_like(method(graph, "seq.2"), R"(
graph(%self : __torch__.Linear,
      %1 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)):
  %bias : Tensor = prim::GetAttr[name="bias"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%self)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%1, %weight, %bias), scope: __module.seq/__module.seq.2
  return (%4)
)",
              R"(
def forward(self,
    argument_1: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  _0 = torch.linear(argument_1, weight, bias)
  return _0
)");
  EXPECT_EQ(testing::renumbered(inlined(module, "Seq").to_string()),
            testing::renumbered(R"(graph(%self.1 : __torch__.Seq,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %b : Tensor = prim::GetAttr[name="b"](%self.1)
  %p : Tensor = prim::GetAttr[name="p"](%self.1)
  %seq : __torch__.Sequential = prim::GetAttr[name="seq"](%self.1)
  %_2 : __torch__.Linear = prim::GetAttr[name="2"](%seq)
  %_1 : __torch__.ReLU = prim::GetAttr[name="1"](%seq)
  %_0 : __torch__.Linear = prim::GetAttr[name="0"](%seq)
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%_0)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%_0)
  %input.1 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::linear(%x, %weight.1, %bias.1), scope: __module.seq/__module.seq.0
  %input : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::relu(%input.1), scope: __module.seq/__module.seq.1
  %bias : Tensor = prim::GetAttr[name="bias"](%_2)
  %weight : Tensor = prim::GetAttr[name="weight"](%_2)
  %18 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%input, %weight, %bias), scope: __module.seq/__module.seq.2
  %6 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%18, %p)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%6, %b, %7)
  return (%8)
)"));
}

TEST(ScriptModules, CalledTwice) {
  HandWritten f;
  f.is_module("Twice");
  Value x = f.input("x", square());
  Value result = linear(f, "fc", linear(f, "fc", x, {2, 2}), {2, 2});
  Value weight = f.attribute("fc.weight", Tensor());
  GraphModule module = f.returns(f.call("aten::add.Tensor", {result, weight}));
  ScriptGraph graph = with_calls(module, "Twice");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Twice,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self.1)
  %weight : Tensor = prim::GetAttr[name="weight"](%fc)
  %fc.1 : __torch__.Linear = prim::GetAttr[name="fc"](%self.1)
  %24 : Tensor = prim::CallMethod[name="forward"](%fc.1, %x)
  %25 : Tensor = prim::CallMethod[name="forward1"](%fc.1, %24)
  %11 : int = prim::Constant[value=1]()
  %12 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%25, %weight, %11)
  return (%12)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  fc = self.fc
  weight = fc.weight
  fc0 = self.fc
  _0 = torch.add((fc0).forward1((fc0).forward(x, ), ), weight)
  return _0
)");
  expect_like(method(graph, "fc"), R"(
graph(%self.3 : __torch__.Linear,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%self.3)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%self.3)
  %input : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%x, %weight.1, %bias.1), scope: __module.fc
  return (%input)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  return torch.linear(x, weight, bias)
)");
  expect_like(method(graph, "fc", "forward1"), R"(
graph(%self : __torch__.Linear,
      %4 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu)):
  %bias : Tensor = prim::GetAttr[name="bias"](%self)
  %weight.3 : Tensor = prim::GetAttr[name="weight"](%self)
  %3 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%4, %weight.3, %bias), scope: __module.fc
  return (%3)
)",
              R"(
def forward1(self,
    argument_1: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  _0 = torch.linear(argument_1, weight, bias)
  return _0
)");
  EXPECT_EQ(testing::renumbered(inlined(module, "Twice").to_string()),
            testing::renumbered(R"(graph(%self.1 : __torch__.Twice,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %fc : __torch__.Linear = prim::GetAttr[name="fc"](%self.1)
  %weight : Tensor = prim::GetAttr[name="weight"](%fc)
  %fc.1 : __torch__.Linear = prim::GetAttr[name="fc"](%self.1)
  %bias.1 : Tensor = prim::GetAttr[name="bias"](%fc.1)
  %weight.1 : Tensor = prim::GetAttr[name="weight"](%fc.1)
  %input : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%x, %weight.1, %bias.1), scope: __module.fc
  %bias : Tensor = prim::GetAttr[name="bias"](%fc.1)
  %weight.3 : Tensor = prim::GetAttr[name="weight"](%fc.1)
  %14 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::linear(%input, %weight.3, %bias), scope: __module.fc
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%14, %weight, %7)
  return (%8)
)"));
}

TEST(ScriptModules, OneModuleFromSeveralPlaces) {
  HandWritten f;
  f.is_module("Deep");
  Value x = f.input("x", square());
  auto d = [&] {
    HandWritten::Inside inside(f, "b.c.d", "D");
    Value u = f.attribute("b.c.d.u", parameter({2, 2}));
    Value product = f.call("aten::mul.Tensor", {x, u});
    Value square = f.call("aten::mul.Tensor", {f.attribute("b.c.d.u2", parameter({2, 2})), u});
    return f.call("aten::mul.Tensor", {product, square});
  };
  auto c = [&] {
    HandWritten::Inside inside(f, "b.c", "C");
    return d();
  };
  auto b = [&] {
    HandWritten::Inside inside(f, "b", "B");
    return f.call("aten::mul.Tensor", {c(), f.attribute("b.c.d.u", Tensor())});
  };
  Value w = f.attribute("w", parameter({2, 2}));
  Value first = f.call("aten::mul.Tensor", {c(), w});
  first = f.call("aten::add.Tensor", {first, f.attribute("b.c.d.u", Tensor())});
  Value second = f.call("aten::mul.Tensor", {b(), w});
  GraphModule module = f.returns(f.call("aten::add.Tensor", {first, second}));
  ScriptGraph graph = with_calls(module, "Deep");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Deep,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %b : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %b.3 : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %c.3 : __torch__.C = prim::GetAttr[name="c"](%b.3)
  %d.3 : __torch__.D = prim::GetAttr[name="d"](%c.3)
  %u.3 : Tensor = prim::GetAttr[name="u"](%d.3)
  %w : Tensor = prim::GetAttr[name="w"](%self.1)
  %b.1 : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %c.1 : __torch__.C = prim::GetAttr[name="c"](%b.1)
  %57 : Tensor = prim::CallMethod[name="forward"](%c.1, %x)
  %19 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%57, %w)
  %20 : int = prim::Constant[value=1]()
  %21 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%19, %u.3, %20)
  %58 : Tensor = prim::CallMethod[name="forward"](%b, %x)
  %26 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%58, %w)
  %27 : int = prim::Constant[value=1]()
  %28 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%21, %26, %27)
  return (%28)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  b = self.b
  b0 = self.b
  c = b0.c
  d = c.d
  u = d.u
  w = self.w
  b1 = self.b
  c0 = b1.c
  _0 = torch.add(torch.mul((c0).forward(x, ), w), u)
  _1 = torch.add(_0, torch.mul((b).forward(x, ), w))
  return _1
)");
  expect_like(method(graph, "b"), R"(
graph(%self.7 : __torch__.B,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %c : __torch__.C = prim::GetAttr[name="c"](%self.7)
  %d : __torch__.D = prim::GetAttr[name="d"](%c)
  %u : Tensor = prim::GetAttr[name="u"](%d)
  %c.5 : __torch__.C = prim::GetAttr[name="c"](%self.7)
  %8 : Tensor = prim::CallMethod[name="forward1"](%c.5, %x)
  %7 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%8, %u), scope: __module.b
  return (%7)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  c = self.c
  d = c.d
  u = d.u
  c0 = self.c
  return torch.mul((c0).forward1(x, ), u)
)");
  expect_like(method(method(graph, "b"), "b.c.d", "forward1"), R"(
graph(%self : __torch__.D,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %u2 : Tensor = prim::GetAttr[name="u2"](%self)
  %u.5 : Tensor = prim::GetAttr[name="u"](%self)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%x, %u.5), scope: __module.b/__module.b.c/__module.b.c.d
  %5 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%u2, %u.5), scope: __module.b/__module.b.c/__module.b.c.d
  %6 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%4, %5), scope: __module.b/__module.b.c/__module.b.c.d
  return (%6)
)",
              R"(
def forward1(self,
    x: Tensor) -> Tensor:
  u2 = self.u2
  u = self.u
  _0 = torch.mul(torch.mul(x, u), torch.mul(u2, u))
  return _0
)");
  EXPECT_EQ(testing::renumbered(inlined(module, "Deep").to_string()),
            testing::renumbered(R"(graph(%self.1 : __torch__.Deep,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %b : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %b.3 : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %c.3 : __torch__.C = prim::GetAttr[name="c"](%b.3)
  %d.3 : __torch__.D = prim::GetAttr[name="d"](%c.3)
  %u.3 : Tensor = prim::GetAttr[name="u"](%d.3)
  %w : Tensor = prim::GetAttr[name="w"](%self.1)
  %b.1 : __torch__.B = prim::GetAttr[name="b"](%self.1)
  %c.1 : __torch__.C = prim::GetAttr[name="c"](%b.1)
  %d.1 : __torch__.D = prim::GetAttr[name="d"](%c.1)
  %u2.1 : Tensor = prim::GetAttr[name="u2"](%d.1)
  %u.1 : Tensor = prim::GetAttr[name="u"](%d.1)
  %21 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%x, %u.1), scope: __module.b.c/__module.b.c.d
  %22 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%u2.1, %u.1), scope: __module.b.c/__module.b.c.d
  %23 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%21, %22), scope: __module.b.c/__module.b.c.d
  %11 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%23, %w)
  %12 : int = prim::Constant[value=1]()
  %13 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%11, %u.3, %12)
  %c : __torch__.C = prim::GetAttr[name="c"](%b)
  %d : __torch__.D = prim::GetAttr[name="d"](%c)
  %u : Tensor = prim::GetAttr[name="u"](%d)
  %c.5 : __torch__.C = prim::GetAttr[name="c"](%b)
  %d.5 : __torch__.D = prim::GetAttr[name="d"](%c.5)
  %u2 : Tensor = prim::GetAttr[name="u2"](%d.5)
  %u.5 : Tensor = prim::GetAttr[name="u"](%d.5)
  %31 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%x, %u.5), scope: __module.b/__module.b.c/__module.b.c.d
  %32 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%u2, %u.5), scope: __module.b/__module.b.c/__module.b.c.d
  %33 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%31, %32), scope: __module.b/__module.b.c/__module.b.c.d
  %34 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%33, %u), scope: __module.b
  %15 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%34, %w)
  %16 : int = prim::Constant[value=1]()
  %17 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::add(%13, %15, %16)
  return (%17)
)"));
}

TEST(ScriptModules, BorrowedParameters) {
  HandWritten f;
  f.is_module("Borrow");
  Value x = f.input("x", square()), p = f.attribute("p", parameter({2, 2}));
  HandWritten::Inside inside(f, "k", "BKid");
  ScriptGraph graph = with_calls(f.returns(f.call("aten::mul.Tensor", {x, p})), "Borrow");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Borrow,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %p : Tensor = prim::GetAttr[name="p"](%self.1)
  %k : __torch__.BKid = prim::GetAttr[name="k"](%self.1)
  %14 : Tensor = prim::CallMethod[name="forward"](%k, %p, %x)
  return (%14)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  p = self.p
  k = self.k
  return (k).forward(p, x, )
)");
  expect_like(method(graph, "k"), R"(
graph(%self : __torch__.BKid,
      %1 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu),
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu) = aten::mul(%x, %1), scope: __module.k
  return (%2)
)",
              R"(
def forward(self,
    argument_1: Tensor,
    x: Tensor) -> Tensor:
  return torch.mul(x, argument_1)
)");
}

// --- what goes in and out --------------------------------------------------------------------------------

TEST(ScriptModules, SeveralResults) {
  HandWritten f;
  f.is_module("UsesPair");
  Value x = f.input("x", square()), sum, product;
  {
    HandWritten::Inside pair(f, "pair", "Pair");
    sum = f.call("aten::add.Tensor", {x, 1});
    product = f.call("aten::mul.Tensor", {x, 2});
  }
  Value both = f.call("aten::add.Tensor", {sum, product});
  GraphModule module = f.returns(f.call("aten::add.Tensor", {both, x}));
  ScriptGraph graph = with_calls(module, "UsesPair");
  expect_like(graph, R"(
graph(%self.1 : __torch__.UsesPair,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %pair : __torch__.Pair = prim::GetAttr[name="pair"](%self.1)
  %24 : (Tensor, Tensor) = prim::CallMethod[name="forward"](%pair, %x)
  %22 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %23 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%24)
  %12 : int = prim::Constant[value=1]()
  %13 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%22, %23, %12)
  %14 : int = prim::Constant[value=1]()
  %15 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%13, %x, %14)
  return (%15)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  pair = self.pair
  _0, _1, = (pair).forward(x, )
  return torch.add(torch.add(_0, _1), x)
)");
  expect_like(method(graph, "pair"), R"(
graph(%self : __torch__.Pair,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}](), scope: __module.pair
  %2 : int = prim::Constant[value=1](), scope: __module.pair
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %1, %2), scope: __module.pair
  %5 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}](), scope: __module.pair
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %5), scope: __module.pair
  %7 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%3, %6)
  return (%7)
)",
              R"(
def forward(self,
    x: Tensor) -> Tuple[Tensor, Tensor]:
  _0 = (torch.add(x, CONSTANTS.c0), torch.mul(x, CONSTANTS.c1))
  return _0
)");
  // Opened up there is nothing to put together and to take apart again.
  EXPECT_EQ(inlined(module, "UsesPair").count("prim::TupleConstruct"), 0u);
}

// A value that is a result of the inner call and is used outside of the outer one goes out once.
TEST(ScriptModules, ResultsAreNotDuplicated) {
  HandWritten f;
  f.is_module("NoDup");
  Value x = f.input("x", ones({1, 32, 16, 16})), a;
  {
    HandWritten::Inside g(f, "g", "G");
    HandWritten::Inside norm(f, "g.norm", "Norm");
    a = f.call("aten::mul.Tensor", {x, 2});
  }
  HandWritten::Inside normalize(f, "n", "Normalize");
  HandWritten::Inside norm(f, "n.norm", "LayerNorm");
  Value weight = f.attribute("n.norm.weight", parameter({16})),
        bias = f.attribute("n.norm.bias", parameter({16}));
  ScriptGraph graph =
      with_calls(f.returns(f.call("aten::layer_norm", {a, Value::list({16}), weight, bias})), "NoDup");
  expect_like(graph, R"(
graph(%self.1 : __torch__.NoDup,
      %x : Float(1, 32, 16, 16, strides=[8192, 256, 16, 1], requires_grad=0, device=cpu)):
  %n : __torch__.Normalize = prim::GetAttr[name="n"](%self.1)
  %g : __torch__.G = prim::GetAttr[name="g"](%self.1)
  %40 : Tensor = prim::CallMethod[name="forward"](%g, %x)
  %41 : Tensor = prim::CallMethod[name="forward"](%n, %40)
  return (%41)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  n = self.n
  g = self.g
  return (n).forward((g).forward(x, ), )
)");
  EXPECT_THAT(graph.to_string(), Not(HasSubstr("prim::TupleUnpack")));
  expect_like(method(graph, "n.norm"), R"(
graph(%self : __torch__.LayerNorm,
      %1 : Float(1, 32, 16, 16, strides=[8192, 256, 16, 1], requires_grad=0, device=cpu)):
  %bias : Tensor = prim::GetAttr[name="bias"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%self)
  %4 : int = prim::Constant[value=16](), scope: __module.n/__module.n.norm
  %5 : int[] = prim::ListConstruct(%4), scope: __module.n/__module.n.norm
  %6 : float = prim::Constant[value=1.0000000000000001e-05](), scope: __module.n/__module.n.norm
  %7 : bool = prim::Constant[value=1](), scope: __module.n/__module.n.norm
  %8 : Float(1, 32, 16, 16, strides=[8192, 256, 16, 1], requires_grad=1, device=cpu) = aten::layer_norm(%1, %5, %weight, %bias, %6, %7), scope: __module.n/__module.n.norm
  return (%8)
)",
              R"(
def forward(self,
    argument_1: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  _0 = torch.layer_norm(argument_1, [16], weight, bias)
  return _0
)");
}

TEST(ScriptModules, ResultsOfInnerCalls) {
  HandWritten f;
  f.is_module("Both");
  Value x = f.input("x", square()), a, positive;
  {
    HandWritten::Inside g(f, "g", "G2");
    {
      HandWritten::Inside norm(f, "g.norm", "Norm");
      a = f.named("a", f.call("aten::mul.Tensor", {x, 2}));
    }
    positive = f.call("aten::relu", {a});
  }
  ScriptGraph graph = with_calls(f.returns(f.call("aten::mul.Tensor", {positive, a})), "Both");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Both,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %g : __torch__.G2 = prim::GetAttr[name="g"](%self.1)
  %25 : (Tensor, Tensor) = prim::CallMethod[name="forward"](%g, %x)
  %23 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %24 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%25)
  %13 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%23, %24)
  return (%13)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  g = self.g
  _0, _1, = (g).forward(x, )
  return torch.mul(_0, _1)
)");
  expect_like(method(graph, "g"), R"(
graph(%self.3 : __torch__.G2,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %norm : __torch__.Norm = prim::GetAttr[name="norm"](%self.3)
  %6 : Tensor = prim::CallMethod[name="forward"](%norm, %x)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::relu(%6), scope: __module.g
  %5 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%4, %6)
  return (%5)
)",
              R"(
def forward(self,
    x: Tensor) -> Tuple[Tensor, Tensor]:
  norm = self.norm
  _0 = (norm).forward(x, )
  return (torch.relu(_0), _0)
)");
  expect_like(method(graph, "g.norm"), R"(
graph(%self : __torch__.Norm,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}](), scope: __module.g/__module.g.norm
  %a : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %2), scope: __module.g/__module.g.norm
  return (%a)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  return torch.mul(x, CONSTANTS.c0)
)");
}

TEST(ScriptModules, NumbersGoOutAsNumbers) {
  HandWritten f;
  f.is_module("SK");
  Value x = f.input("x", square()), flat, rows;
  {
    HandWritten::Inside k(f, "k", "SizeKid");
    Value first = f.size(x, 0), second = f.size(x, 1);
    flat = f.call("aten::view", {x, Value::list({f.call("operator.mul", {first, second})})});
    rows = f.size(x, 0);
  }
  ScriptGraph graph = with_calls(f.returns(f.call("aten::view", {flat, Value::list({rows, -1})})), "SK");
  expect_like(graph, R"(
graph(%self.1 : __torch__.SK,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %k : __torch__.SizeKid = prim::GetAttr[name="k"](%self.1)
  %32 : (int, Tensor) = prim::CallMethod[name="forward"](%k, %x)
  %30 : int, %31 : Float(4, strides=[1], requires_grad=0, device=cpu) = prim::TupleUnpack(%32)
  %21 : int = prim::Constant[value=-1]()
  %22 : int[] = prim::ListConstruct(%30, %21)
  %23 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::view(%31, %22)
  return (%23)
)",
              R"(
def forward(self,
    x: Tensor) -> Tensor:
  k = self.k
  _0, _1, = (k).forward(x, )
  return torch.view(_1, [_0, -1])
)");
  expect_like(method(graph, "k"), R"(
graph(%self : __torch__.SizeKid,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0](), scope: __module.k
  %2 : int = aten::size(%x, %1), scope: __module.k
  %4 : Long(device=cpu) = prim::NumToTensor(%2), scope: __module.k
  %5 : int = prim::Constant[value=1](), scope: __module.k
  %6 : int = aten::size(%x, %5), scope: __module.k
  %7 : Long(device=cpu) = prim::NumToTensor(%6), scope: __module.k
  %8 : Long(requires_grad=0, device=cpu) = aten::mul(%4, %7), scope: __module.k
  %9 : int = aten::Int(%8), scope: __module.k
  %10 : int[] = prim::ListConstruct(%9), scope: __module.k
  %11 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::view(%x, %10), scope: __module.k
  %12 : int = prim::Constant[value=0](), scope: __module.k
  %13 : int = aten::size(%x, %12), scope: __module.k
  %14 : Long(device=cpu) = prim::NumToTensor(%13), scope: __module.k
  %15 : int = aten::Int(%14)
  %16 : (int, Float(4, strides=[1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%15, %11)
  return (%16)
)",
              R"(
def forward(self,
    x: Tensor) -> Tuple[int, Tensor]:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = ops.prim.NumToTensor(torch.size(x, 1))
  _2 = torch.view(x, [int(torch.mul(_0, _1))])
  _3 = ops.prim.NumToTensor(torch.size(x, 0))
  return (int(_3), _2)
)");
}

TEST(ScriptModules, NumbersFromInputsAreMadeOutside) {
  HandWritten f;
  f.is_module("Sel");
  Value x = f.input("x", square()), k = f.input("k", from_data(std::vector<int64_t>{1}).view(SymIntSpan()));
  Value sum = f.named("x", f.call("aten::add.Tensor", {x, 1}));
  HandWritten::Inside inside(f, "kid", "SelKid");
  Value row = f.call("aten::select.int", {sum, 0, f.call("aten::item", {k})});
  GraphModule module = f.returns(row);
  ScriptGraph graph = with_calls(module, "Sel");
  expect_like(graph, R"(
graph(%self.1 : __torch__.Sel,
      %x.1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %k : Long(requires_grad=0, device=cpu)):
  %kid : __torch__.SelKid = prim::GetAttr[name="kid"](%self.1)
  %11 : int = aten::Int(%k), scope: __module.kid
  %8 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %9 : int = prim::Constant[value=1]()
  %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x.1, %8, %9)
  %17 : Tensor = prim::CallMethod[name="forward"](%kid, %x, %11)
  return (%17)
)",
              R"(
def forward(self,
    x: Tensor,
    k: Tensor) -> Tensor:
  kid = self.kid
  _0 = int(k)
  x0 = torch.add(x, CONSTANTS.c0)
  return (kid).forward(x0, _0, )
)");
  expect_like(method(graph, "kid"), R"(
graph(%self : __torch__.SelKid,
      %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %4 : int):
  %1 : int = prim::Constant[value=0](), scope: __module.kid
  %2 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::select(%x, %1, %4), scope: __module.kid
  return (%2)
)",
              R"(
def forward(self,
    x: Tensor,
    argument_2: int) -> Tensor:
  return torch.select(x, 0, argument_2)
)");
  EXPECT_EQ(testing::renumbered(inlined(module, "Sel").to_string()),
            testing::renumbered(R"(graph(%self.1 : __torch__.Sel,
      %x.1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %k : Long(requires_grad=0, device=cpu)):
  %kid : __torch__.SelKid = prim::GetAttr[name="kid"](%self.1)
  %4 : int = aten::Int(%k), scope: __module.kid
  %5 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %6 : int = prim::Constant[value=1]()
  %x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x.1, %5, %6)
  %9 : int = prim::Constant[value=0](), scope: __module.kid
  %10 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::select(%x, %9, %4), scope: __module.kid
  return (%10)
)"));
}

}  // namespace
}  // namespace weft
