// Ports of TestTracer: detach, functions with a derivative of their own, and names.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "seeds/support/file_check.h"
#include "support/expect_error.h"
#include "weft/autograd/function.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using autograd::FunctionContext;
using testing::args;
using testing::expect_equal;
using testing::expect_values;
using testing::FileCheck;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::warnings_of;

// --- detach
// --------------------------------------------------------------------------------------------------

template <typename F>
void expect_detached(F foo, const char* second) {
  TracedFunction traced = trace(foo, args({rand({3, 4}), rand({4, 5})}));
  FileCheck().check("matmul").check(second).run(traced.graph().to_string());
  Tensor x = rand({3, 4}), w = rand({4, 5}).set_requires_grad();
  Tensor result = traced(x, w);
  expect_equal(result, foo(x, w));
  EXPECT_FALSE(result.requires_grad());
  EXPECT_FALSE(static_cast<bool>(autograd::grad_fn(result)));
}

TEST(TestTracer, test_trace_detach) {
  expect_detached([](const Tensor& x, const Tensor& w) { return matmul(x, w).detach(); }, "detach");
}

TEST(TestTracer, test_trace_detach_redispatch) {
  auto foo = [](const Tensor& x, const Tensor& w) {
    Tensor y = matmul(x, w);
    EXPECT_TRUE(y.requires_grad());
    y = y.detach();
    EXPECT_FALSE(y.requires_grad());
    return y;
  };
  trace(foo, args({rand({3, 4}), rand({4, 5}).set_requires_grad()}), {.check_trace = false});
}

TEST(TestTracer, test_trace_detach_inplace) {
  auto foo = [](const Tensor& x, const Tensor& w) {
    Tensor y = matmul(x, w);
    y.detach_();
    return y;
  };
  // "detach.default(": the functional form.
  expect_detached(foo, "aten.detach.default");
}

TEST(TestTracer, test_trace_detach_inplace_redispatch) {
  auto foo = [](const Tensor& x, const Tensor& w) {
    Tensor y = matmul(x, w);
    EXPECT_TRUE(y.requires_grad());
    y.detach_();
    EXPECT_FALSE(y.requires_grad());
    return y;
  };
  trace(foo, args({rand({3, 4}), rand({4, 5}).set_requires_grad()}), {.check_trace = false});
}

// --- functions with a derivative of their own
// ----------------------------------------------------------------

struct MyInplaceFn : autograd::Function<MyInplaceFn> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    x.add_(1);
    ctx.mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return grads; }
};

TEST(TestTracer, test_inplace_check) {
  Tensor x = randn({5, 5});
  TracedFunction ge = trace([](const Tensor& t) { return MyInplaceFn::apply(t); }, args({x}),
                            {.check_trace = false, .force_outplace = true});
  EXPECT_ERROR(ge(x), "inplace MyInplaceFn not supported");
}

struct MyFn : autograd::Function<MyFn> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x + 1; }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return grads; }
};

TEST(TestTracer, test_python_function) {
  auto f = [](const Tensor& x) { return MyFn::apply(x + 2) + 3; };
  TracedFunction fn = trace(f, args({zeros({2})}));
  Tensor x = from_data<float>({1, 2, 3}), y = randn({2, 2}).set_requires_grad();
  expect_equal(fn(x), x + 6);
  Tensor result = fn(y);
  expect_equal(result, f(y));
  expect_equal(autograd::grad({result.sum()}, {y})[0], ones({2, 2}));
}

struct MyPairFn : autograd::Function<MyPairFn> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext&, const Tensor& x) { return {x + 1, x - 1}; }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] + grads[1]};
  }
};

TEST(TestTracer, test_python_function_tup) {
  auto f = [](const Tensor& x) {
    auto [a, b] = MyPairFn::apply(x + 2);
    return a + b + 3;
  };
  TracedFunction fn = trace(f, args({zeros({2})}));
  Tensor x = from_data<float>({1, 2, 3}), y = randn({2, 2}).set_requires_grad();
  expect_equal(fn(x), f(x));
  Tensor result = fn(y);
  expect_equal(result, f(y));
  expect_equal(autograd::grad({result.sum()}, {y})[0], full({2, 2}, 2.0));
}

struct TestFunc : autograd::Function<TestFunc> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return neg(x); }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {neg(grads[0])};
  }
};
struct UsesTestFunc : nn::Module {
  Tensor forward(const Tensor& x) { return relu(TestFunc::apply(x)); }
  WEFT_ARGS(x)
};
struct Wrapper : nn::Module {
  UsesTestFunc tm = child("tm", UsesTestFunc());
  Tensor forward(const Tensor& x) { return tm(x); }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_trace_autograd_function) {
  std::optional<TracedModule> traced;
  EXPECT_THAT(warnings_of([&] { traced = trace(Wrapper(), args({rand({3, 4})})); }), IsEmpty());
  Tensor x = randn({3, 4});
  expect_equal((*traced)(x), relu(neg(x)));
}

// --- names
// ---------------------------------------------------------------------------------------------------

TEST(TestTracer, test_trace_records_names) {
  auto foo = [](const Tensor& bar, const Tensor&) {
    Tensor baz = named("baz", bar + 3);
    Tensor quick_brown_fox = named("quick_brown_fox", neg(baz));
    Tensor yeet;
    for (int i = 0; i < 20; ++i) yeet = named("yeet", quick_brown_fox - 3.14);
    return yeet;
  };
  TracedFunction traced = trace(foo, args({rand({3, 3}), rand({3, 3})}), {.arg_names = "bar, baz"});
  const std::string text = traced.graph_text({.types = false});
  EXPECT_THAT(text, StartsWith("graph(%bar : Tensor,\n      %baz.1 : Tensor):\n"));
  EXPECT_THAT(text, HasSubstr("  %baz : Tensor = aten::add(%bar, "));
  EXPECT_THAT(text, HasSubstr("  %quick_brown_fox : Tensor = aten::neg(%baz)\n"));
  // Of several that ask for one name the last has it.
  EXPECT_THAT(text, HasSubstr("  %yeet : Tensor = aten::sub(%quick_brown_fox, "));
  EXPECT_THAT(text, HasSubstr("  return (%yeet)\n"));
  EXPECT_THAT(traced.code(), HasSubstr("    baz: Tensor) -> Tensor:\n  baz0 = torch.add(bar, CONSTANTS.c0)\n"
                                       "  quick_brown_fox = torch.neg(baz0)\n"));
}

TEST(TestTracer, test_trace_func_argument_names_captured) {
  auto fn = [](const Tensor& first, const Tensor& second) { return first + second; };
  TracedFunction traced = trace(fn, args({ones({1}), ones({1})}), {.arg_names = "first_arg, second_arg"});
  FileCheck().check("first_arg").check_next("second_arg").run(traced.graph_text());
  EXPECT_THAT(traced.graph_text({.types = false}),
              StartsWith("graph(%first_arg : Tensor,\n      %second_arg : Tensor):\n"));
}

TEST(TestTracer, test_trace_partial_func_argument_names_captured) {
  auto fn = [](const Tensor& first, int64_t second) { return first + second; };
  TracedFunction traced = trace(fn, args({ones({1})}), {.arg_names = "first_arg, second_arg = 1"});
  FileCheck().check("first_arg").check_not("second_arg").run(traced.graph().to_string());
  expect_equal(traced(ones({3})), full({3}, 2.0));
}

struct TwoArguments : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 1, 3));
  Tensor forward(const Tensor& first_arg, const Tensor& second_arg) { return conv(first_arg) + second_arg; }
  WEFT_ARGS(first_arg, second_arg)
};

TEST(TestTracer, test_trace_module_argument_names_captured) {
  TwoArguments m;
  Value example = args({ones({1, 1, 3, 3}), ones({1, 1, 3, 3})});
  for (const TracedModule& traced :
       {trace(method(m, &TwoArguments::forward, "forward"), example), trace(m, example)})
    FileCheck().check("first_arg").check_next("second_arg").run(traced.graph_text());
}

}  // namespace
}  // namespace weft
