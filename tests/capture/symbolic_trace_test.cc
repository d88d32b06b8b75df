// symbolic_trace: programs without inputs.
#include "weft/capture/symbolic_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/base/warning.h"
#include "weft/dispatch/layers.h"
#include "weft/func/functionalize.h"
#include "weft/nn/layers.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

struct Net : nn::Module {
  nn::Sequential body = child("body", nn::Sequential(nn::Linear(4, 3), nn::ReLU()));
  nn::Linear fc = child("fc", nn::Linear(3, 2));
  Tensor scale = parameter("scale", ones({2}));
  Tensor forward(const Tensor& x) {
    Tensor y = fc(body(x)) * scale;
    return y + ones({2});
  }
  WEFT_ARGS(x)
};

TEST(SymbolicTrace, KeepsLeafModulesAndSharesParameters) {
  Net net;
  GraphModule g = symbolic_trace(net);
  EXPECT_EQ(g.code(), R"(


def forward(self, x):
    body_0 = getattr(self.body, "0")(x);  x = None
    body_1 = getattr(self.body, "1")(body_0);  body_0 = None
    fc = self.fc(body_1);  body_1 = None
    scale = self.scale
    mul = torch.ops.aten.mul.Tensor(fc, scale);  fc = scale = None
    _tensor_constant0 = self._tensor_constant0
    add = torch.ops.aten.add.Tensor(mul, _tensor_constant0);  mul = _tensor_constant0 = None
    return add
    )");
  Tensor x = randn({5, 4});
  expect_equal(g(x), net(x));
  EXPECT_TRUE(g.find("scale").to_tensor().is_same(net.scale));
}

TEST(SymbolicTrace, LeafRuleDecides) {
  Net net;
  GraphModule flat =
      symbolic_trace(net, {.is_leaf_module = [](const nn::ModuleState&, std::string_view) { return false; }});
  for (const Node& node : flat.graph()) EXPECT_NE(node.kind(), NodeKind::kCallModule);
  GraphModule whole = symbolic_trace(
      net, {.is_leaf_module = [](const nn::ModuleState&, std::string_view path) { return path == "body"; }});
  EXPECT_THAT(whole.code(), HasSubstr("body = self.body(x)"));
  Tensor x = randn({5, 4});
  expect_equal(flat(x), net(x));
  expect_equal(whole(x), net(x));
}

TEST(SymbolicTrace, InPlaceWritesAreMethods) {
  auto f = [](const Tensor& a) {
    Tensor b = a * 2;
    b.relu_();
    return b;
  };
  GraphModule g = symbolic_trace(f);
  EXPECT_THAT(g.graph().to_string(), HasSubstr("call_method[target=relu_]"));
  expect_equal(g(full({2}, -3.0)), zeros({2}));
  GraphModule functional = make_graph(func::functionalize([g](const Tensor& x) { return g(x); }))(randn({3}));
  EXPECT_THAT(functional.code(), HasSubstr("torch.ops.aten.relu.default("));
}

TEST(SymbolicTrace, UntypedValuesRecord) {
  auto f = [](Var a, Var b) {
    assert_that(a == b, "must be equal");
    return a + b["x"];
  };
  EXPECT_ERROR(f(Var(3), Var(4)), "must be equal");
  GraphModule g = symbolic_trace([](Var a, Var b) {
    assert_that(a == 3, "must be three");
    return a + b["x"];
  });
  EXPECT_THAT(g.code(), HasSubstr("torch._assert(eq, 'must be three')"));
  EXPECT_EQ(g.call({3, to_value(std::map<std::string, int>{{"x", 4}})}).to_int(), 7);
  EXPECT_ERROR(g.call({5, to_value(std::map<std::string, int>{{"x", 4}})}), "must be three");
  EXPECT_ERROR(symbolic_trace([](Var a) { return a == 3 ? Var(1) : Var(2); }),
               "symbolically traced variables cannot be used as inputs to control flow");
}

TEST(SymbolicTrace, ConcreteArgumentsAreFixedAndChecked) {
  auto f = [](const Tensor& x, bool negate, int64_t times) {
    Tensor y = x;
    for (int64_t i = 0; i < times; ++i) y = negate ? -y : y * 2;
    return y;
  };
  GraphModule g = symbolic_trace(
      f, {.concrete_args = Dict{{"negate", false}, {"times", 3}}, .arg_names = "x, negate, times"});
  expect_equal(g.call({ones({2}), false, 3}).to_tensor(), full({2}, 8.0));
  EXPECT_ERROR(g.call({ones({2}), false, 4}),
               "times has been specialized to have value 3 but got another value");
  EXPECT_ERROR(symbolic_trace(f),
               "argument 'arg1' has a C++ type that only values have: fix it by concrete_args");
}

TEST(SymbolicTrace, ContainersAreFixedLeafByLeaf) {
  auto f = [](const Tensor& x, const std::vector<int64_t>& shape, const std::optional<double>& scale) {
    return std::tuple(x.reshape(SymInts(shape.begin(), shape.end())), scale.value_or(1));
  };
  GraphModule g =
      symbolic_trace(f, {.concrete_args = Dict{{"shape", Value::list({2, 3})}, {"scale", Value()}},
                         .arg_names = "x, shape, scale"});
  EXPECT_EQ(g.code(), R"(


def forward(self, x, shape, scale):
    x, shape_1, shape_2, scale, = fx_pytree.tree_flatten_spec([x, shape, scale], self._in_spec)
    eq = shape_1 == 2;  shape_1 = None
    _assert = torch._assert(eq, 'shape has been specialized to have value 2 but got another value');  eq = _assert = None
    eq_1 = shape_2 == 3;  shape_2 = None
    _assert_1 = torch._assert(eq_1, 'shape has been specialized to have value 3 but got another value');  eq_1 = _assert_1 = None
    is_ = operator.is_(scale, None);  scale = None
    _assert_2 = torch._assert(is_, 'scale has been specialized to have value None but got another value');  is_ = _assert_2 = None
    reshape = torch.ops.aten.reshape.default(x, [2, 3]);  x = None
    return pytree.tree_unflatten([reshape, 1.0], self._out_spec)
    )");
  const Value shape = Value::list({2, 3});
  Value result = g.call({arange(6), shape, Value()});
  expect_equal(result.elements()[0].to_tensor(), arange(6).view({2, 3}));
  EXPECT_EQ(result.elements()[1].to_double(), 1);
  EXPECT_TRUE(result.is_tuple());
  EXPECT_EQ(g.call({arange(6)}, {{"scale", Value()}, {"shape", shape}}).elements().size(), 2u);
  EXPECT_ERROR(g.call({arange(6), Value::list({3, 2}), Value()}),
               "shape has been specialized to have value 2 but got another value");
  EXPECT_ERROR(g.call({arange(6), Value::list({2, 3, 1}), Value()}), "a list of 2");
  EXPECT_ERROR(g.call({arange(6), shape, 1.5}),
               "scale has been specialized to have value None but got another value");
}

TEST(SymbolicTrace, FixedTensorsAreAWarning) {
  auto f = [](const Tensor& x, const std::tuple<Tensor, int64_t>& pair) {
    return x + std::get<0>(pair) * std::get<1>(pair);
  };
  WarningCapture capture;
  GraphModule g = symbolic_trace(
      f, {.concrete_args = Dict{{"pair", Value::tuple({ones({2}), 3})}}, .arg_names = "x, pair"});
  ASSERT_EQ(capture.warnings().size(), 1u);
  EXPECT_EQ(
      capture.warnings()[0].message,
      "Was not able to add assertion to guarantee correct input pair to specialized function. It is up to "
      "the user to make sure that your inputs match the inputs you specialized the function with.");
  expect_equal(g.call({ones({2}), Value::tuple({zeros({2}), 3})}).to_tensor(), full({2}, 4.0));
  EXPECT_ERROR(g.call({ones({2}), Value::tuple({ones({2}), 4})}),
               "pair has been specialized to have value 3 but got another value");
}

TEST(SymbolicTrace, OptionsForNoArgumentAreRefused) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  EXPECT_ERROR(symbolic_trace(f, {.concrete_args = Dict{{"z", 1}}, .arg_names = "x, y"}),
               "symbolic_trace: concrete_args names 'z', but the arguments are [x, y]");
  EXPECT_ERROR(symbolic_trace(f, {.meta_args = Dict{{"x", ones({2})}}}),
               "symbolic_trace: meta_args names 'x', but the arguments are [arg0, arg1]");
}

struct TakesAnyName : nn::Module {
  nn::Linear fc = child("fcOut", nn::Linear(3, 3));
  Tensor scale = parameter("W", ones({3}));
  Var forward(const Tensor& x, const Var& kwargs) {
    Tensor scaled = fc(x) * scale;
    return Var(scaled) + kwargs["foo"];
  }
  WEFT_ARGS(inX, **kwargs)
};

// As PyTorch writes `self.fcOut(inX) * self.W + kwargs["foo"]`, but for the operators.
TEST(SymbolicTrace, NamesAsPyTorchHasThem) {
  TakesAnyName net;
  GraphModule g = symbolic_trace(net);
  const char* code = R"(


def forward(self, inX, **kwargs):
    in_x = inX
    _kwargs = kwargs
    fc_out = self.fcOut(in_x);  in_x = None
    w = self.W
    mul = torch.ops.aten.mul.Tensor(fc_out, w);  fc_out = w = None
    getitem = _kwargs['foo'];  _kwargs = None
    add = mul + getitem;  mul = getitem = None
    return add
    )";
  EXPECT_EQ(g.code(), code);
  Tensor x = ones({1, 3}), foo = full({3}, 2);
  Tensor expected = net.fc(x) + foo;
  expect_equal(g.call({x}, {{"foo", foo}}).to_tensor(), expected);
  expect_equal(g.call({}, {{"foo", foo}, {"inX", x}}).to_tensor(), expected);
  expect_equal(g.call({x, Dict{{"foo", foo}}}).to_tensor(), expected);
  EXPECT_ERROR(g.call({x}), "no entry 'foo'");
  GraphModule again = symbolic_trace(g);
  EXPECT_EQ(again.code(), code);
  expect_equal(again.call({x}, {{"foo", foo}}).to_tensor(), expected);
}

struct Two : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {x + 1, x * 2}; }
  WEFT_ARGS(x)
};
struct Nested : nn::Module {
  std::pair<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& x) { return {x, {x + 1, x * 2}}; }
  WEFT_ARGS(x)
};
struct Several : nn::Module {
  std::vector<Tensor> forward(const Tensor& x) { return x.split(2); }
  WEFT_ARGS(x)
};
template <typename Inner>
struct HasParts : nn::Module {
  Inner two = child("two", Inner());
  Tensor forward(const Tensor& x) {
    auto result = two(x);
    if constexpr (std::is_same_v<Inner, Two>) return std::get<0>(result) + std::get<1>(result);
    else if constexpr (std::is_same_v<Inner, Nested>) return std::get<1>(std::get<1>(result));
    else return result[0] + result[1];
  }
  WEFT_ARGS(x)
};

TEST(SymbolicTrace, LeafModulesWithSeveralResults) {
  auto leaf = [](const nn::ModuleState&, std::string_view) { return true; };
  HasParts<Two> net;
  const char* code = R"(


def forward(self, x):
    two = self.two(x);  x = None
    getitem = two[0]
    getitem_1 = two[1];  two = None
    add = torch.ops.aten.add.Tensor(getitem, getitem_1);  getitem = getitem_1 = None
    return add
    )";
  GraphModule g = symbolic_trace(net, {.is_leaf_module = leaf});
  EXPECT_EQ(g.code(), code);
  expect_equal(g(full({2}, 3.0)), full({2}, 10.0));
  EXPECT_EQ(symbolic_trace(g, {.is_leaf_module = leaf}).code(), code);
  Tensor meta = empty({4}, kFloat32, std::nullopt, Device("meta"));
  EXPECT_EQ(symbolic_trace(net, {.is_leaf_module = leaf, .meta_args = Dict{{"x", meta}}}).code(), code);

  HasParts<Nested> nested;
  expect_equal(symbolic_trace(nested, {.is_leaf_module = leaf})(full({2}, 3.0)), full({2}, 6.0));
  HasParts<Several> several;
  EXPECT_ERROR(symbolic_trace(several, {.is_leaf_module = leaf}),
               "the leaf module 'two' gives a number, or a list of any length");
  GraphModule sized = symbolic_trace(several, {.is_leaf_module = leaf, .meta_args = Dict{{"x", meta}}});
  expect_equal(sized(arange(4)), from_data<int64_t>({2, 4}));
}

TEST(SymbolicTrace, MetaArgumentsAnswerQuestions) {
  auto f = [](const Tensor& x) { return x.size(0) < 30 ? x.relu() : x.sigmoid(); };
  Tensor small = empty({15, 2}, kFloat32, std::nullopt, Device("meta"));
  GraphModule g = symbolic_trace(f, {.meta_args = Dict{{"arg0", small}}});
  EXPECT_THAT(g.code(), HasSubstr("relu"));
  EXPECT_THAT(g.code(), ::testing::Not(HasSubstr("sigmoid")));
  EXPECT_ERROR(symbolic_trace([](const Tensor& x) { return x.dim() == 2 ? x : x * 2; }),
               "dim() of 'arg0' is not known: it is traced without inputs");
  EXPECT_ERROR(symbolic_trace([](const Tensor& x) { return x.unbind(0)[0]; }),
               "gives a list whose length depends on sizes that are not known");
}

TEST(SymbolicTrace, StandInsDoNotOutliveTheTrace) {
  Tensor kept;
  symbolic_trace([&](const Tensor& x) {
    kept = x * 2;
    return kept;
  });
  EXPECT_ERROR(kept + 1, "an argument is a value of a capture that has ended; it has no data");
  EXPECT_EQ(layer_state().active, 0u);
}

TEST(SymbolicTrace, BracketsGoByTheDimsThatTheyName) {
  GraphModule first = symbolic_trace([](const Tensor& x) { return at(x, 0); });
  EXPECT_THAT(first.code(), HasSubstr("torch.ops.aten.select.int(arg0, 0, 0)"));
  expect_equal(first(arange(6).view({2, 3})), arange(3));
  GraphModule column = symbolic_trace([](const Tensor& x) { return at(x, {Slice(), 1}); });
  expect_equal(column(arange(6).view({2, 3})), from_data<int64_t>({1, 4}));
  GraphModule rest = symbolic_trace([](const Tensor& x) { return at(x, {{1, 3}, std::nullopt, kEllipsis}); });
  expect_equal(rest(arange(8).view({4, 2})), arange(2, 6).view({2, 1, 2}));
  GraphModule indexed =
      symbolic_trace([](const Tensor& x) { return at(x, {Slice(), from_data<int64_t>({2, 0})}); });
  expect_equal(indexed(arange(6).view({2, 3})), from_data<int64_t>({2, 0, 5, 3}).view({2, 2}));
  GraphModule written = symbolic_trace([](const Tensor& x) {
    Tensor y = x.clone();
    put_at(y, 0, 7);
    return y;
  });
  expect_equal(written(zeros({2})), from_data<float>({7, 0}));
  EXPECT_ERROR(symbolic_trace([](const Tensor& x) { return at(x, {kEllipsis, 0}); }),
               "dim() of 'arg0' is not known: it is traced without inputs");
  EXPECT_ERROR(first(ones({})), "select");
}

TEST(SymbolicTrace, NotesWhereCallsWereMadeOnRequest) {
  auto f = [](const Tensor& x) {
    Tensor y = x.sin();  // this line
    y.add_(1);
    return std::tuple(y, x.size(0));
  };
  GraphModule with = symbolic_trace(f, {.record_stack_traces = true}), without = symbolic_trace(f);
  for (const char* name : {"sin", "add_", "size"}) {
    EXPECT_THAT(with.graph().find(name)->source(), HasSubstr("symbolic_trace_test.cc")) << name;
    EXPECT_NE(with.graph().find(name)->meta().trace, nullptr);
    EXPECT_EQ(without.graph().find(name)->source(), "");
  }
  EXPECT_NE(with.graph().find("sin")->source(), with.graph().find("add_")->source());
  GraphModule untyped =
      symbolic_trace([](Var a, Var b) { return a + b["n"]; }, {.record_stack_traces = true});
  EXPECT_THAT(untyped.graph().find("getitem")->source(), HasSubstr("symbolic_trace_test.cc"));
}

struct Counter : nn::Module {
  Tensor count = buffer("count", zeros({2}));
  Tensor forward(Tensor x) {
    count.add_(1);
    return x * 2;
  }
  WEFT_ARGS(x)
};

TEST(SymbolicTrace, WritesToABufferAreNoDeadCode) {
  Counter counter;
  GraphModule g = symbolic_trace(counter);
  g.graph().eliminate_dead_code();
  EXPECT_THAT(g.code(), HasSubstr("add_ = count.add_(1)"));
  g(ones({2}));
  expect_equal(counter.count, ones({2}));
}

}  // namespace
}  // namespace weft
