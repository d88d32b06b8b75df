// What only a run can answer is asserted in the graph: once, after the last value that it needs.
#include "weft/passes/insert_runtime_assertions.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/func/control_flow.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/ops/fake.h"
#include "weft/passes/shape_prop.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using testing::ramp;
using testing::vec;

// A graph whose sizes are symbols of an environment of its own.
struct Propagated {
  Propagated(const char* text, const ValueList& inputs) : module(parse_code(text)) {
    ShapeProp(module, env).propagate(inputs);
  }
  SymInt number(const char* node) const {
    return module.graph().find(node)->meta_or_null()->value.to_sym_int();
  }
  SymInt size(const char* node, int64_t dim) const {
    return module.graph().find(node)->meta_or_null()->value.tensor_ref().size(dim);
  }
  std::string inserted() {
    EXPECT_TRUE(insert_runtime_assertions(module, *env));
    verify(module);
    std::string code = module.graph().code();
    EXPECT_FALSE(insert_runtime_assertions(module, *env)) << "a second run adds to " << code;
    EXPECT_EQ(module.graph().code(), code);
    return code;
  }

  Ref<ShapeEnv> env = ShapeEnv::create();
  GraphModule module;
};

Value run_on(const GraphModule& module, const ValueList& inputs) { return Interpreter(module).run(inputs); }

std::string code_of_text(const char* text) { return parse_code(text).code(); }

Tensor count(int64_t value) { return full({}, value, kInt64); }

constexpr const char* kTakesACount = R"(
def forward(self, x, y):
    item = torch.ops.aten._local_scalar_dense.default(x)
    zeros = torch.ops.aten.zeros.default([item])
    exp = torch.ops.aten.exp.default(y)
    return (zeros, exp)
)";

TEST(InsertRuntimeAssertions, StandAfterTheLastValueTheyNeed) {
  Propagated graph(kTakesACount, {count(4), ramp({5})});
  check(graph.number("item") <= graph.size("y", 0) * 2, "at most two for each row");
  check(graph.number("item") >= 2);
  EXPECT_EQ(graph.inserted(), code_of_text(R"py(
def forward(self, x, y):
    sym_size_int = torch.ops.aten.sym_size.int(y, 0)
    item = torch.ops.aten._local_scalar_dense.default(x)
    ge = item >= 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'")
    mul = sym_size_int * 2
    le = item <= mul
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(le, "at most two for each row (Runtime assertion failed for expression u0 <= 2*s0 on node 'le')")
    ge_1 = item >= 2
    _assert_scalar_default_2 = torch.ops.aten._assert_scalar.default(ge_1, "Runtime assertion failed for expression 2 <= u0 on node 'ge_1'")
    zeros = torch.ops.aten.zeros.default([item])
    exp = torch.ops.aten.exp.default(y)
    return (zeros, exp)
)py"));
}

TEST(InsertRuntimeAssertions, ARunThatViolatesThemSaysWhich) {
  Propagated graph(kTakesACount, {count(4), ramp({5})});
  check(graph.number("item") <= graph.size("y", 0) * 2, "at most two for each row");
  check(graph.number("item") >= 2);
  graph.inserted();
  GraphModule& module = graph.module;
  EXPECT_EQ(describe(run_on(module, {count(3), ramp({5})}).elements()[0].to_tensor()).str(), "f32[3]");
  EXPECT_EQ(describe(run_on(module, {count(6), ramp({3})}).elements()[0].to_tensor()).str(), "f32[6]");
  EXPECT_ERROR(run_on(module, {count(7), ramp({3})}), "at most two for each row");
  EXPECT_ERROR(run_on(module, {count(1), ramp({3})}),
               "Runtime assertion failed for expression 2 <= u0 on node 'ge_1'");
}

TEST(InsertRuntimeAssertions, BelongToTheLineOfTheirValue) {
  Propagated graph(kTakesACount, {count(4), ramp({5})});
  graph.module.graph().find("item")->meta().source = "model.cc:41";
  check(graph.number("item") >= 2);
  graph.inserted();
  EXPECT_EQ(graph.module.graph().find("ge")->source(), "model.cc:41");
  EXPECT_EQ(graph.module.graph().find("_assert_scalar_default")->source(), "model.cc:41");
  EXPECT_EQ(graph.module.graph().find("zeros")->source(), "");
}

TEST(InsertRuntimeAssertions, BoundsThatFollowFromEarlierOnesAreLeftOut) {
  Propagated graph(kTakesACount, {count(4), ramp({5})});
  const SymInt n = graph.number("item");
  check(n <= 100);
  check(n > 2);
  check(n <= 7);
  check(n <= 9);
  const std::string code = graph.inserted();
  EXPECT_EQ(code, code_of_text(R"(
def forward(self, x, y):
    item = torch.ops.aten._local_scalar_dense.default(x)
    ge = item >= 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'")
    le = item <= 100
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(le, "Runtime assertion failed for expression u0 <= 100 on node 'le'")
    gt = item > 2
    _assert_scalar_default_2 = torch.ops.aten._assert_scalar.default(gt, "Runtime assertion failed for expression 2 < u0 on node 'gt'")
    le_1 = item <= 7
    _assert_scalar_default_3 = torch.ops.aten._assert_scalar.default(le_1, "Runtime assertion failed for expression u0 <= 7 on node 'le_1'")
    zeros = torch.ops.aten.zeros.default([item])
    exp = torch.ops.aten.exp.default(y)
    return (zeros, exp)
)"));
}

TEST(InsertRuntimeAssertions, RangesComeFirstWhereTheyAreWritten) {
  Propagated graph(kTakesACount, {count(4), ramp({5})});
  check(graph.number("item") <= 7);
  EXPECT_TRUE(insert_runtime_assertions(graph.module, *graph.env, Bounds::kConstraints));
  verify(graph.module);
  const std::string code = graph.module.graph().code();
  EXPECT_EQ(code, code_of_text(R"(
def forward(self, x, y):
    item = torch.ops.aten._local_scalar_dense.default(x)
    sym_constrain_range_for_size_default = torch.ops.aten.sym_constrain_range_for_size.default(item)
    sym_constrain_range_default = torch.ops.aten.sym_constrain_range.default(item, min = 0, max = 7)
    ge = item >= 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'")
    le = item <= 7
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(le, "Runtime assertion failed for expression u0 <= 7 on node 'le'")
    zeros = torch.ops.aten.zeros.default([item])
    exp = torch.ops.aten.exp.default(y)
    return (zeros, exp)
)"));
  EXPECT_FALSE(insert_runtime_assertions(graph.module, *graph.env, Bounds::kConstraints));
  EXPECT_EQ(graph.module.graph().code(), code);
  EXPECT_ERROR(run_on(graph.module, {count(8), ramp({3})}), "Invalid value range for 8 between [0, 7]");
  // Who runs the graph on symbols again asserts the same, though the range says it already.
  auto again = ShapeEnv::create();
  ShapeProp(graph.module, again).propagate({count(4), ramp({5})});
  EXPECT_FALSE(insert_runtime_assertions(graph.module, *again, Bounds::kConstraints));
}

TEST(InsertRuntimeAssertions, UseNodesThatAreThere) {
  Propagated graph(R"(
def forward(self, x, y):
    item = torch.ops.aten._local_scalar_dense.default(x)
    exp = torch.ops.aten.exp.default(y)
    size = torch.ops.aten.sym_size.int(y, 0)
    double = size * 2
    small = item <= double
    zeros = torch.ops.aten.zeros.default([double])
    return (zeros, exp, small)
)",
                   {count(4), ramp({5})});
  check(graph.number("item") != graph.number("double") + 1);
  const std::string code = graph.inserted();
  // The size is read before its first use now, and only once.
  EXPECT_EQ(code, code_of_text(R"(
def forward(self, x, y):
    size = torch.ops.aten.sym_size.int(y, 0)
    item = torch.ops.aten._local_scalar_dense.default(x)
    mul = size * 2
    add = mul + 1
    ne = add != item
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ne, "Runtime assertion failed for expression Ne(2*s0 + 1, u0) on node 'ne'")
    exp = torch.ops.aten.exp.default(y)
    double = size * 2
    small = item <= double
    zeros = torch.ops.aten.zeros.default([double])
    return (zeros, exp, small)
)")) << code;
}

TEST(InsertRuntimeAssertions, DoNotRepeatThoseOfTheProgram) {
  Propagated graph(R"(
def forward(self, x):
    item = torch.ops.aten._local_scalar_dense.default(x)
    ge = item >= 3
    check = torch.ops.aten._assert_scalar.default(ge, "at least three")
    sym_constrain_range_default = torch.ops.aten.sym_constrain_range.default(item, max=9)
    zeros = torch.ops.aten.zeros.default([item])
    return zeros
)",
                   {count(4)});
  EXPECT_FALSE(graph.env->runtime_asserts().empty());
  const std::string before = graph.module.graph().code();
  EXPECT_FALSE(insert_runtime_assertions(graph.module, *graph.env));
  EXPECT_EQ(graph.module.graph().code(), before);
  EXPECT_ERROR(run_on(graph.module, {count(2)}), "at least three");
  EXPECT_ERROR(run_on(graph.module, {count(10)}), "Invalid value range for 10 between");
}

TEST(InsertRuntimeAssertions, SizesThatComeFromDataAreRead) {
  Propagated graph(R"(
def forward(self, x):
    nonzero = torch.ops.aten.nonzero.default(x)
    sum_1 = torch.ops.aten.sum.default(nonzero)
    return sum_1
)",
                   {ramp({5})});
  check(graph.size("nonzero", 0) > 1);
  EXPECT_EQ(graph.inserted(), code_of_text(R"py(
def forward(self, x):
    sym_size_int = torch.ops.aten.sym_size.int(x, 0)
    nonzero = torch.ops.aten.nonzero.default(x)
    sym_size_int_1 = torch.ops.aten.sym_size.int(nonzero, 0)
    ge = sym_size_int_1 >= 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'")
    le = sym_size_int_1 <= sym_size_int
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(le, "a data-dependent size stays within the number of elements (Runtime assertion failed for expression u0 <= s0 on node 'le')")
    gt = sym_size_int_1 > 1
    _assert_scalar_default_2 = torch.ops.aten._assert_scalar.default(gt, "Runtime assertion failed for expression 1 < u0 on node 'gt'")
    sum_1 = torch.ops.aten.sum.default(nonzero)
    return sum_1
)py"));
  EXPECT_ERROR(run_on(graph.module, {vec({0, 0, 1})}), "Runtime assertion failed for expression 1 < u0");
}

TEST(InsertRuntimeAssertions, GuardsThatWereDeferredStandAtTheTop) {
  auto env = ShapeEnv::create();
  env->defer_guards([](const sym::Expr*) { return true; });
  GraphModule module(parse_code(R"(
def forward(self, x):
    exp = torch.ops.aten.exp.default(x)
    return exp
)"));
  ShapeProp(module, env).propagate({ramp({6, 4})});
  guard(module.graph().find("x")->meta_or_null()->value.tensor_ref().size(0) % 3 == 0);
  EXPECT_TRUE(insert_runtime_assertions(module, *env));
  EXPECT_EQ(module.graph().code(), code_of_text(R"(
def forward(self, x):
    sym_size_int = torch.ops.aten.sym_size.int(x, 0)
    mod = sym_size_int % 3
    eq = mod == 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(eq, "Runtime assertion failed for expression Eq(Mod(s0, 3), 0) on node 'eq'")
    exp = torch.ops.aten.exp.default(x)
    return exp
)"));
  EXPECT_ERROR(run_on(module, {ramp({5, 4})}), "Eq(Mod(s0, 3), 0)");
}

TEST(InsertRuntimeAssertions, TakeLinearTime) {
  Graph graph;
  Node *x = &graph.placeholder("x"), *n = &graph.placeholder("n");
  Node* last = x;
  for (int i = 0; i < 20000; ++i)
    last = &graph.call_function("aten::cat", {Value::list({value_of(*last), value_of(*x)})});
  Node& item = graph.call_function("aten::_local_scalar_dense", {value_of(*n)});
  graph.output(Value::tuple({value_of(*last), value_of(item)}));
  GraphModule module(std::move(graph));
  auto env = ShapeEnv::create();
  ShapeProp(module, env).propagate({ramp({5}), count(3)});
  check(module.graph().find(item.name())->meta_or_null()->value.to_sym_int() > 2);
  EXPECT_TRUE(insert_runtime_assertions(module, *env));
}

// --- symbols that no size is -----------------------------------------------------------------------------

// A tensor without memory of these sizes and strides.
Tensor shaped(const SymInts& sizes, const SymInts& strides, const SymInt& offset = 0) {
  Tensor like = shape_only(ramp({1}));
  like.impl()->set_geometry(sizes, strides, offset);
  return like;
}

struct Derived {
  Derived()
      : module(parse_code(
            "def forward(self, x):\n    alias = torch.ops.aten.alias.default(x)\n    return alias\n")) {
    env->defer_guards([](const sym::Expr*) { return true; });
  }
  std::string inserted(const Tensor& input) {
    ShapeProp(module, env).propagate({input});
    insert_runtime_assertions(module, *env);
    verify(module);
    const std::string code = module.graph().code();
    EXPECT_FALSE(insert_runtime_assertions(module, *env)) << code;
    return code;
  }
  Ref<ShapeEnv> env = ShapeEnv::create();
  GraphModule module;
};

TEST(InsertRuntimeAssertions, RecoverSymbolsFromLinearSizes) {
  Derived graph;
  SymInt n = graph.env->create_symbol(4, "n", sym::DimPolicy::kDynamic);
  guard(n % 4 == 0);
  EXPECT_EQ(graph.inserted(shaped({n * 2 + 1, 3}, {3, 1})), code_of_text(R"(
def forward(self, x):
    sym_size_int = torch.ops.aten.sym_size.int(x, 0)
    sub = sym_size_int - 1
    floordiv = sub // 2
    mod = floordiv % 4
    eq = mod == 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(eq, "Runtime assertion failed for expression Eq(Mod(s0, 4), 0) on node 'eq'")
    alias = torch.ops.aten.alias.default(x)
    return alias
)"));
  EXPECT_EQ(describe(run_on(graph.module, {ramp({17, 3})}).to_tensor()).str(), "f64[17, 3]");
  EXPECT_ERROR(run_on(graph.module, {ramp({13, 3})}), "Eq(Mod(s0, 4), 0)");
}

TEST(InsertRuntimeAssertions, RecoverSymbolsFromStridesAndOffsets) {
  Derived graph;
  SymInt rows = graph.env->create_symbol(5, "rows", sym::DimPolicy::kDynamic);
  SymInt pitch = graph.env->create_symbol(8, "pitch", sym::DimPolicy::kDynamic);
  SymInt start = graph.env->create_symbol(7, "start", sym::DimPolicy::kDynamic);
  guard(pitch % 4 == 0);
  guard(start < rows * 2);
  const std::string code = graph.inserted(shaped({rows, 2, 3}, {pitch * rows, pitch, 1}, start));
  EXPECT_EQ(code, code_of_text(R"(
def forward(self, x):
    sym_size_int = torch.ops.aten.sym_size.int(x, 0)
    sym_stride_int = torch.ops.aten.sym_stride.int(x, 1)
    sym_storage_offset = torch.ops.aten.sym_storage_offset.default(x)
    mod = sym_stride_int % 4
    eq = mod == 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(eq, "Runtime assertion failed for expression Eq(Mod(s1, 4), 0) on node 'eq'")
    mul = sym_size_int * 2
    lt = sym_storage_offset < mul
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(lt, "Runtime assertion failed for expression s2 < 2*s0 on node 'lt'")
    alias = torch.ops.aten.alias.default(x)
    return alias
)")) << code;
}

TEST(InsertRuntimeAssertions, RecoverAFactorThatOthersKnow) {
  Derived graph;
  SymInt rows = graph.env->create_symbol(5, "rows", sym::DimPolicy::kDynamic);
  SymInt pitch = graph.env->create_symbol(8, "pitch", sym::DimPolicy::kDynamic);
  graph.env->constrain(rows.expr(), {1, 100});
  guard(pitch % 4 == 0);
  const std::string code = graph.inserted(shaped({rows, 3}, {pitch * rows, 1}));
  EXPECT_NE(code.find("sym_stride_int // sym_size_int"), std::string::npos) << code;
  // A factor that may be 0 tells nothing: the assertion is about a number that the graph does not have.
  Derived other;
  SymInt maybe = other.env->create_symbol(5, "maybe", sym::DimPolicy::kDynamic, sym::ValueRange{0, 9});
  SymInt hidden = other.env->create_symbol(8, "hidden", sym::DimPolicy::kDynamic);
  guard(hidden % 4 == 0);
  EXPECT_EQ(other.inserted(shaped({maybe, 3}, {hidden * maybe, 1})).find("_assert_scalar"),
            std::string::npos);
}

// --- captures --------------------------------------------------------------------------------------------

TEST(InsertRuntimeAssertions, OfACaptureHoldAtRunTime) {
  auto f = [](const Tensor& x, const Tensor& n) {
    SymInt count = Value(n.item()).to_sym_int();
    check(count >= 0, "the count is a size");
    check(count <= x.size(0), "no more than there are");
    return x.narrow(0, 0, count).sum();
  };
  GraphModule module = make_graph(f, {.mode = CaptureMode::kSymbolic})(vec({1, 2, 3}), count(2));
  ShapeEnv& env = *module.graph().placeholders()[0]->meta_or_null()->value.tensor_ref().size(0).env();
  EXPECT_TRUE(insert_runtime_assertions(module, env));
  EXPECT_LT(module.code().find("no more than there are"), module.code().find("slice"));
  verify(module, Stage::kFunctional);
  module.graph().eliminate_dead_code();
  EXPECT_EQ(run_on(module, {vec({1, 2, 3, 4}), count(3)}).to_tensor().item().to_double(), 6);
  EXPECT_ERROR(run_on(module, {vec({1, 2, 3, 4}), count(5)}), "no more than there are");
  EXPECT_ERROR(run_on(module, {vec({1, 2, 3, 4}), count(-1)}), "the count is a size");
  EXPECT_FALSE(insert_runtime_assertions(module, env));
}

// What a branch learns about its own data is asserted there.
TEST(InsertRuntimeAssertions, OfABranchStandInTheBranch) {
  auto found = [](const Tensor& x) {
    Tensor at = x.nonzero();
    check(at.size(0) > 1, "two at least");
    return at.sum();
  };
  auto f = [&](const Tensor& x, const Tensor& pred) {
    return func::cond(pred, found, [](const Tensor& t) { return t.sum().to(kInt64); }, x);
  };
  GraphModule module = make_graph(f, {.mode = CaptureMode::kSymbolic})(vec({1, 2, 3}), full({}, true, kBool));
  ShapeEnv& env = *module.graph().placeholders()[0]->meta_or_null()->value.tensor_ref().size(0).env();
  EXPECT_TRUE(insert_runtime_assertions(module, env));
  EXPECT_FALSE(insert_runtime_assertions(module, env));
  EXPECT_EQ(module.graph().code().find("_assert_scalar"), std::string::npos);
  EXPECT_EQ(module(vec({1, 2, 3}), full({}, true, kBool)).item().to_int(), 3);
  EXPECT_ERROR(module(vec({0, 0, 3}), full({}, true, kBool)), "two at least");
  EXPECT_EQ(module(vec({0, 0, 3}), full({}, false, kBool)).item().to_int(), 3);
}

// --- shapes ----------------------------------------------------------------------------------------------

std::string shapes_text(const GraphModule& module) {
  std::string text;
  for (const Node& node : module.graph()) {
    const Value& value = node.meta_or_null()->value;
    const std::string shape = value.is_tensor() ? describe(value.tensor_ref()).str() : value.to_string();
    text += node.name() + ": " + shape + "\n";
  }
  return text;
}

TEST(ShapePropSymbolic, NotesSymbolicSizesOnAllNodes) {
  GraphModule module(parse_code(R"(
def forward(self, x, w):
    mm = torch.ops.aten.mm.default(x, w)
    size = torch.ops.aten.sym_size.int(mm, 0)
    double = size * 2
    view = torch.ops.aten.view.default(mm, [-1])
    cat = torch.ops.aten.cat.default([view, view])
    item = torch.ops.aten.nonzero.default(cat)
    return (item, double)
)"));
  auto env = ShapeEnv::create();
  ShapeProp(module, env).propagate({ramp({5, 4}), ramp({4, 3})});
  EXPECT_EQ(shapes_text(module),
            "x: f64[s0, s1]\nw: f64[s1, s2]\nmm: f64[s0, s2]\nsize: s0\ndouble: 2*s0\nview: f64[s0*s2]\n"
            "cat: f64[2*s0*s2]\nitem: i64[u0, 1]\noutput: (i64[u0, 1], "
            "2*s0)\n");
  EXPECT_EQ(env->symbols()[0].sources[0].to_string(), "x.size(0)");
  EXPECT_EQ(env->symbols()[2].sources[0].to_string(), "w.size(1)");
  EXPECT_TRUE(env->guards().empty());
}

TEST(ShapePropSymbolic, TakesSymbolicInputsAsTheyAre) {
  GraphModule module(parse_code(R"(
def forward(self, x, n):
    add = n + 1
    zeros = torch.ops.aten.zeros.default([add])
    cat = torch.ops.aten.cat.default([x, zeros])
    return cat
)"));
  auto env = ShapeEnv::create();
  SymInt rows = env->create_symbol(5, "rows", sym::DimPolicy::kDynamic);
  Tensor x = shaped({rows * 3}, {1});
  Value result = ShapeProp(module, env).propagate({x, rows});
  EXPECT_EQ(describe(result.to_tensor()).str(), "f64[4*s0 + 1]");
  EXPECT_ERROR(ShapeProp(module, ShapeEnv::create()).propagate({x, rows}), "belongs to another capture");
}

TEST(ShapePropSymbolic, NamesTheLeavesOfContainers) {
  GraphModule module(parse_code(R"(
def forward(self, pair):
    first = pair[0]
    second = pair[1]
    add = torch.ops.aten.add.Tensor(first, second)
    return add
)"));
  auto env = ShapeEnv::create();
  ShapeProp(module, env).propagate({Value::list({ramp({5}), ramp({5})})});
  EXPECT_EQ(env->symbols()[0].sources[0].to_string(), "pair[0].size(0)");
  EXPECT_EQ(shapes_text(module).substr(shapes_text(module).find("add")), "add: f64[s0]\noutput: f64[s0]\n");
}

}  // namespace
}  // namespace weft
