// Ports of TestTracer: functions of tensors, constants, tuples, casts and random numbers.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/capture/optimized.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::args;
using testing::check_trace;
using testing::CheckTrace;
using testing::expect_equal;
using testing::expect_values;
using testing::scalar;
using testing::warnings_of;

Tensor with_grad(Tensor tensor) { return tensor.set_requires_grad(); }

TEST(TestTracer, test_simple) {
  check_trace(
      [](const Tensor& x, const Tensor& y) { return sigmoid(tanh(x * (x + y))); },
      {.reference = args({with_grad(from_data<float>({0.4f})), with_grad(from_data<float>({0.7f}))})});
}

struct MyModule : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {x + 1, from_data<float>({0})}; }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_trace_legacy_ctor) {
  TracedModule traced = trace(MyModule(), randn({2, 2}));
  Tensor x = randn({2, 2});
  expect_values(traced.call({x}), Value::tuple({x + 1, zeros({1})}));
}

TEST(TestTracer, test_trace_single_tuple) {
  auto f2 = [](const Tensor& x) { return std::tuple(x); };
  TracedFunction traced = trace(f2, scalar(2));
  expect_values(traced.call({scalar(2)}), Value::tuple({scalar(2)}));
}

TEST(TestTracer, test_trace_out_operator_with_two_output) {
  Tensor example = rand({2, 8});
  auto [values, indices] = cummax(example, 1);
  auto run_cummax = [](const Tensor& x, const Tensor& out_1, const Tensor& out_2) {
    return cummax_out(out_1, out_2, x, 1);
  };
  TracedFunction traced = trace(run_cummax, args({example, values.clone(), indices.clone()}));
  Tensor x = rand({2, 8}), first = empty({2, 8}), second = empty({2, 8}, kInt64);
  Value result = traced.call({x, first, second});
  auto [wanted_values, wanted_indices] = cummax(x, 1);
  expect_values(result, Value::tuple({wanted_values, wanted_indices}));
  expect_equal(first, wanted_values);
  expect_equal(second, wanted_indices);
}

struct Point {
  Tensor x, y;
  WEFT_STRUCT(Point, x, y)
};

TEST(TestTracer, test_trace_namedtuple) {
  auto f = [](const Point& p) { return p.x + p.y; };
  Point p{randn({1}), randn({1})};
  TracedFunction traced = trace(f, args({to_value(p)}));
  expect_equal(traced(p), f(p));
  Point q{randn({1}), randn({1})};
  expect_equal(traced(q), f(q));
  // A plain tuple serves as well: for the function, as an example, and for what was traced.
  const Value plain = Value::tuple({q.x, q.y});
  expect_equal(as_value_function(f)(ValueList{plain}).to_tensor(), f(q));
  expect_equal(traced.call({plain}).to_tensor(), f(q));
  TracedFunction by_tuple = trace(f, args({Value::tuple({p.x, p.y})}));
  expect_equal(by_tuple(q), f(q));
  expect_equal(by_tuple.call({plain}).to_tensor(), f(q));
}

TEST(TestTracer, test_typeas_trace_check) {
  Tensor a = with_grad(from_data<float>({0.4f})), b = with_grad(from_data<float>({0.7f}));
  TracedFunction traced = trace([](const Tensor& x, const Tensor& y) { return x.type_as(y); }, args({a, b}));
  EXPECT_EQ(traced(a, b.detach().to(kFloat64)).dtype(), kFloat64);
}

TEST(TestTracer, test_constant) {
  WarningCapture suppressed;
  check_trace([](const Tensor& x) { return x.matmul(diag(from_data<float>({2, 2}))); },
              {.reference = args({with_grad(ones({2, 2}))}), .inputs = args({with_grad(randn({2, 2}))})});
}

TEST(TestTracer, test_wrapped_number) {
  auto foobar = [] { return -10000.0 * ones({1}, kFloat32); };
  std::optional<TracedFunction> traced;
  EXPECT_THAT(warnings_of([&] { traced = trace(foobar, args({}), {.check_trace = true}); }),
              ::testing::IsEmpty());
  EXPECT_EQ((*traced)().dtype(), kFloat32);
  expect_equal((*traced)(), foobar());
}

TEST(TestTracer, test_trace_random) {
  auto f = [](const Tensor& mean, const Tensor& std) { return normal(mean, std); };
  TracedFunction traced = trace(f, args({zeros({2, 3}), ones({2, 3})}), {.check_trace = false});
  Tensor mean = zeros({5, 5}), std = ones({5, 5});
  Tensor output;
  {
    ForkRng restored = fork_rng();
    output = f(mean, std);
  }
  expect_equal(traced(mean, std), output);
}

TEST(TestTracer, test_output_unflatten) {
  auto fn = [](const Tensor& x) {
    return std::tuple(x * 2, std::tuple(x.pow(2), x + 4, std::tuple(x + 2)), x * 4);
  };
  Tensor x = randn({2, 2});
  GraphModule loaded = check_trace(fn, {.reference = args({x})});
  Value leaf = Value::tuple({x.pow(2), x + 4, Value::tuple({x + 2})});
  expect_values(loaded.call({x}), Value::tuple({x * 2, leaf, x * 4}));
}

TEST(TestTracer, test_input_flatten) {
  auto fn = [](const Tensor& x, const std::tuple<Tensor, Tensor>& t) {
    return x * std::get<0>(t) * std::get<1>(t);
  };
  check_trace(fn, {.reference = args({randn({1}), Value::tuple({randn({1}), randn({1})})})});
}

TEST(TestTracer, test_repeated_input) {
  Tensor x = randn({2, 2});
  GraphModule ge = check_trace([](const Tensor& a, const Tensor& b) { return a + b; },
                               {.reference = Value::list({x, x}), .arg_names = "a, b"});
  EXPECT_EQ(ge.graph().placeholders().size(), 2u);
  Tensor y = randn({2, 2});
  expect_equal(ge(x, y), x + y);
  // As a module it has a self, and repeated inputs stay apart.
  TracedModule loaded = TracedModule::over(ge);
  const ScriptGraph script = loaded.forward_method().script();
  ASSERT_EQ(script.inputs().size(), 3u);
  EXPECT_EQ(std::set(script.inputs().begin(), script.inputs().end()).size(), 3u);
  std::vector<std::string> names;
  for (const ScriptValue* input : script.inputs()) names.push_back(input->name);
  EXPECT_THAT(names, ::testing::ElementsAre("self", "a", "b"));
  EXPECT_TRUE(script.inputs()[0]->type.is(ScriptType::Kind::kClass));
  expect_equal(loaded(x, y), x + y);
}

TEST(TestTracer, test_repeated_output) {
  auto fn = [](const Tensor& a, const Tensor& b) {
    Tensor z = a + b;
    return std::tuple(z, z);
  };
  GraphModule ge = check_trace(fn, {.reference = Value::list({randn({2, 2}), randn({2, 2})})});
  const Value& output = ge.graph().output_node()->args()[0];
  ASSERT_TRUE(output.is_tuple());
  ASSERT_EQ(output.elements().size(), 2u);
  EXPECT_NE(node_in(output.elements()[0]), nullptr);
  EXPECT_EQ(node_in(output.elements()[0]), node_in(output.elements()[1]));
}

TEST(TestTracer, test_ge) {
  auto foo = [](const Tensor& a, const Tensor& b) { return a * b / (a - b) + b; };
  TracedFunction ge = trace(foo, args({rand({1}), rand({1})}));
  Tensor a = with_grad(rand({1})), b = with_grad(rand({1}));
  auto derivatives = [&](const Tensor& result) {
    std::vector<Tensor> first = autograd::grad({result + 3}, {a, b}, {}, {.create_graph = true});
    Tensor l2 = first[0] * first[1] + first[1] * first[1];
    std::vector<Tensor> second = autograd::grad({l2}, first);
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  std::vector<Tensor> got = derivatives(at(ge(a, b), 0)), wanted = derivatives(at(foo(a, b), 0));
  ASSERT_EQ(got.size(), 4u);
  for (size_t i = 0; i < 4; ++i) expect_equal(got[i], wanted[i]);
}

// What upstream's decorator does: traces where the function is defined.
template <typename F>
TracedFunction traced_at(const Value& examples, F f) {
  return trace(std::move(f), examples);
}

TEST(TestTracer, test_trace_annotation) {
  TracedFunction foo = traced_at(args({rand({1})}), [](const Tensor& a) { return a + a + a; });
  Tensor x = randn({5, 5});
  expect_equal(foo(x), x + x + x);
}

TEST(TestTracer, test_trace_variable_instantiation) {
  auto random_foo = [](const Tensor& x) {
    Tensor same = x;
    Tensor sum = Tensor(same) + 1.0;
    return Tensor(sum);
  };
  TracedFunction traced = trace(random_foo, args({rand({3, 4})}));
  Tensor x = rand({5, 6});
  expect_equal(traced(x), random_foo(x));
}

TEST(TestTracer, test_export_no_reorder) {
  auto func = [](const Tensor& a, const Tensor& b) { return a * b / (a - 2 * b) + b; };
  std::vector<Tensor> inputs = {with_grad(from_data<float>({0.55619788169860839844f})),
                                with_grad(from_data<float>({0.25947844982147216797f}))};
  TracedFunction ge1 = trace(func, Value::list_of(inputs));
  GraphModule ge2 = testing::saved_and_loaded(ge1.graph_module());
  Tensor out1 = ge1(inputs[0], inputs[1]), out2 = ge2(inputs[0], inputs[1]);
  std::vector<Tensor> grad1 = autograd::grad({out1}, inputs), grad2 = autograd::grad({out2}, inputs);
  expect_equal(out1, out2);
  for (size_t i = 0; i < 2; ++i) expect_equal(grad1[i], grad2[i]);
}

TEST(TestTracer, test_trace_save) {
  TracedFunction traced = trace([](const Tensor& x) { return x + 2; }, args({ones({2, 2})}));
  std::string path = ::testing::TempDir() + "weft_trace_save_" + std::to_string(::getpid());
  save_graph_module(traced.graph_module(), path);
  GraphModule loaded = load_graph_module(path);
  std::filesystem::remove(path);
  Tensor input = randn({2, 2});
  expect_equal(loaded(input), traced(input));
  expect_equal(loaded(input), input + 2);
}

struct FiveNumbers : nn::Module {
  Tensor forward() { return arange(5); }
  WEFT_ARGS()
};

TEST(TestTracer, test_trace_optioanl_dtype) {
  TracedModule traced = trace(FiveNumbers(), args({}));
  expect_values(traced.call({}), arange(5));
  for (const Node& node : traced.graph())
    for (const auto& [name, value] : node.kwargs()) EXPECT_TRUE(name != "dtype" || value.is_none());
}

TEST(TestTracer, test_trace_inverse) {
  TracedFunction traced = trace([](const Tensor& x) { return bitwise_not(x); }, zeros({3, 4}, kUInt8));
  expect_values(traced.call({zeros({3}, kUInt8)}), full({3}, 255, kUInt8));
}

TEST(TestTracer, test_trace_contiguous) {
  auto foo = [](const Tensor& x) {
    return at(x, {Slice(), Slice(), Slice({}, {}, 2)}).contiguous().view({12});
  };
  Tensor x = rand({2, 3, 4});
  TracedFunction traced = trace(foo, args({x}));
  Tensor y = traced(x);
  expect_equal(y, foo(x));
  EXPECT_NE(y.storage()->data(), x.storage()->data());
}

TEST(TestTracer, test_trace_contiguous_short_circuit) {
  TracedFunction traced = trace([](const Tensor& x) { return x.contiguous(); }, args({rand({2, 3, 4})}));
  EXPECT_THAT(script_text(traced.graph_module()), ::testing::HasSubstr("aten::contiguous"));
}

TEST(TestTracer, test_trace_casts) {
  using Cast = std::function<Tensor(const Tensor&)>;
  std::vector<Cast> casts = {
      [](const Tensor& x) { return x.to(kUInt8); },
      [](const Tensor& x) { return x.to(kFloat32); },
      [](const Tensor& x) { return to(x, std::nullopt, std::nullopt, kCpu); },
      [](const Tensor& x) { return to(x, {}, {}, Device("cpu")); },
      [](const Tensor& x) { return to(x, kInt64); },
      [](const Tensor& x) { return to(x, kCpu, kFloat32); },
      [](const Tensor& x) { return x.to(x); },
  };
  for (const Cast& cast : casts) {
    TracedFunction traced = trace(cast, rand({2, 2}));
    EXPECT_THAT(testing::operators_in(traced.graph()), ::testing::ElementsAre("to"));
    Tensor x = rand({2, 2});
    expect_values(traced.call({x}), cast(x));
  }
  auto to_tensor = [](const Tensor& x, const Tensor& y) { return x.to(y); };
  TracedFunction traced = trace(to_tensor, args({randn({2, 2}), randn({1, 8})}));
  EXPECT_THAT(testing::operators_in(traced.graph()), ::testing::ElementsAre("to"));
  Tensor x = randn({2, 2}), y = randn({1, 10}).to(kFloat64);
  expect_values(traced.call({x, y}), to_tensor(x, y));
}

// The cases of upstream's run_ge_tests, with tensors on one device. What they give stays there.
void run_ge_tests(Device device) {
  auto random = [device](SymIntSpan sizes) { return to(rand(sizes), std::nullopt, std::nullopt, device); };
  auto one = [&] { return random({1}); };
  auto two = [&] { return Value::list({one(), one()}); };
  auto expect_device = [&](const GraphModule& module, const Value& inputs) {
    for (const Value& leaf : tree_leaves(module.call(inputs.elements())))
      EXPECT_EQ(leaf.to_tensor().device(), device);
  };
  auto check = [&](auto f, const CheckTrace& options) {
    expect_device(check_trace(f, options), options.reference);
  };
  check([](const Tensor& a, const Tensor& b) { return a * b + b; },
        {.reference = two(), .inputs = Value::list({random({2, 3}), random({2, 3})})});
  check([](const Tensor& a, const Tensor& b) { return std::tuple(b, a); }, {.reference = two()});
  auto foo = [](const Tensor& a) {
    Tensor t = a * a;
    return std::tuple(t * t, 4 * t);
  };
  check(foo, {.reference = Value::list({one()})});
  check([](const Tensor& a, const Tensor&) { return a * a; }, {.reference = two(), .allow_unused = true});
  check(foo, {.reference = Value::list({one()}), .drop = 1});
  check([](const Tensor& a, const Tensor& b) { return a * b / (a - 2 * b) + b; }, {.reference = two()});
}

TEST(TestTracer, test_ge_unoptimized) {
  OptimizedExecution off(false);
  run_ge_tests(kCpu);
}
// Optimised forms are all that execution knows: there is no fuser to switch.
TEST(TestTracerParts, test_ge_optimized) {
  OptimizedExecution on(true);
  run_ge_tests(kCpu);
}
TEST(TestTracer, test_ge_cuda) { run_ge_tests(Device("sim")); }

TEST(TestTracer, test_trace_tensor_factory) {
  auto run = [](auto factory, const Tensor& input, bool inputs_require_grads) {
    auto fn = [factory](const Tensor& x) { return x + factory(); };
    check_trace(fn, {.reference = args({input}), .inputs_require_grads = inputs_require_grads});
    EXPECT_THAT(trace(fn, input).graph().to_string(), ::testing::HasSubstr("ones"));
  };
  run([] { return ones({2, 3}); }, ones({2, 3}), true);
  run([] { return ones({2, 3}, kInt32); }, ones({2, 3}, kInt32), false);
  Tensor out = empty({0});
  run([out] { return ones_out(out, {2, 3}); }, ones({2, 3}), true);
  for (const char* name : {"sim:0", "sim:1"}) {
    const Device device(name);
    run([device] { return ones({2, 3}, std::nullopt, std::nullopt, device); },
        ones({2, 3}, std::nullopt, std::nullopt, device), true);
  }
}

}  // namespace
}  // namespace weft
