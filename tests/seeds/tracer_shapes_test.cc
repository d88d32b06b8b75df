// Ports of TestTracer: sizes as values, slices, indexing and assignment.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/nn/functional.h"
#include "weft/nn/layers.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::args;
using testing::check_trace;
using testing::expect_equal;
using testing::expect_values;
using testing::warnings_of;

// --- sizes
// ---------------------------------------------------------------------------------------------------

// Traced on one input, as f on another and on the same.
template <typename F>
void compare_traced(F f, const Tensor& example, const Tensor& other) {
  TracedFunction traced = trace(f, example);
  for (const Tensor& x : {other, example}) expect_values(traced.call({x}), to_value(f(x)));
}

void trace_size(bool requires_grad) {
  Tensor x = randn({5, 2, 4}).set_requires_grad(requires_grad);
  Tensor y = randn({4, 8, 4}).set_requires_grad(requires_grad);
  compare_traced([](const Tensor& t) { return t.view({t.sizes()[1] * 2, t.size(0), 2}); }, x, y);
}
TEST(TestTracer, test_trace_size) { trace_size(false); }
TEST(TestTracer, test_trace_size_with_grad) {
  trace_size(true);
  auto f = [](const Tensor& t) { return t.view({t.sizes()[1] * 2, t.size(0), 2}) * t.size(0); };
  TracedFunction traced = trace(f, randn({5, 2, 4}).set_requires_grad());
  Tensor x = randn({4, 8, 4}).set_requires_grad(), weight = randn({16, 4, 2});
  Tensor got = autograd::grad({(traced(x) * weight).sum()}, {x})[0];
  expect_equal(got, autograd::grad({(f(x) * weight).sum()}, {x})[0]);
  expect_equal(got, weight.view({4, 8, 4}) * 4);
}

TEST(TestTracer, test_trace_numel) {
  TracedFunction traced = trace([](const Tensor& x) { return x.numel(); }, randn({2, 3, 4}));
  EXPECT_EQ(traced.call({randn({4, 5, 6})}), Value(120));
  EXPECT_EQ(traced.call({randn({2, 3, 4})}), Value(24));
}

void trace_arange(bool requires_grad) {
  Tensor x = randn({5, 3, 2}).set_requires_grad(requires_grad);
  Tensor y = randn({8, 2, 4}).set_requires_grad(requires_grad);
  compare_traced([](const Tensor& t) { return arange(t.size(0)); }, x, y);
  compare_traced([](const Tensor&) { return arange(12); }, x, y);
  compare_traced([](const Tensor& t) { return arange(t.size(0), t.size(0) + 5); }, x, y);
}
TEST(TestTracer, test_trace_arange) { trace_arange(false); }
TEST(TestTracer, test_trace_arange_with_grad) { trace_arange(true); }

TEST(TestTracer, test_trace_full_dynamic_shape) {
  Tensor x = randn({3, 4}), y = randn({2, 7});
  TracedFunction traced = trace([](const Tensor& t) { return full(t.sizes(), 2.0); }, x);
  expect_equal(traced(y), full({2, 7}, 2.0));
  expect_equal(traced(x), full({3, 4}, 2.0));
}

struct M : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return std::get<1>(x.topk(as_size(y), 1)); }
  WEFT_ARGS(x, y)
};

TEST(TestTracer, test_trace_topk) {
  M mod;
  auto k = [](int64_t value) { return full({}, value, kInt64); };
  TracedModule traced = trace(mod, args({randint(0, 10, {20, 20}), k(17)}));
  for (auto [size, count] : {std::pair<int64_t, int64_t>{9, 8}, {50, 12}}) {
    Tensor x = randint(0, size, {size, size});
    Tensor result;
    EXPECT_THAT(warnings_of([&] { result = traced(x, k(count)); }), ::testing::IsEmpty());
    expect_equal(result, mod(x, k(count)));
  }
}

struct Net : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 32, 3, {.padding = 1}));
  Tensor forward(const Tensor& x) {
    return nn::functional::interpolate(conv(x),
                                       {.scale_factor = {3}, .mode = "bilinear", .align_corners = false});
  }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_interpolate_trace) {
  Net net;
  TracedModule traced = trace(net, args({zeros({1, 1, 28, 28})}));
  Tensor x = zeros({1, 1, 14, 14});
  expect_values(traced.call({x}), net(x));
  EXPECT_EQ(describe_sizes(traced(x).sizes()).str(), "[1, 32, 42, 42]");
}

// --- slices
// --------------------------------------------------------------------------------------------------

void trace_slice(bool requires_grad) {
  WarningCapture suppressed;
  auto slices = [](const Tensor& x) {
    std::array<Tensor, 4> results;
    for (int64_t i = 0; i < 4; ++i)
      results[static_cast<size_t>(i)] = at(x, {{0, x.size(0) - i}, {i, x.size(2)}, {i, 3}});
    return std::tuple_cat(results);
  };
  auto slice_select = [](const Tensor& x) {
    std::array<Tensor, 4> results;
    for (int64_t i = 0; i < 4; ++i)
      results[static_cast<size_t>(i)] = at(x, {Slice(), {i, std::nullopt}, x.size(2) - 5});
    return std::tuple_cat(results);
  };
  Tensor x = randn({5, 6, 7}).set_requires_grad(requires_grad);
  Tensor y = randn({7, 8, 9}).set_requires_grad(requires_grad);
  compare_traced(slices, x, y);
  compare_traced(slice_select, x, y);
}
TEST(TestTracer, test_trace_slice) { trace_slice(false); }
TEST(TestTracer, test_trace_slice_with_grad) { trace_slice(true); }

TEST(TestTracer, test_trace_slice_full_dim) {
  auto foo = [](const Tensor& x) { return at(x, {{0, 5}, 0}) + 1.0; };
  TracedFunction traced = trace(foo, args({rand({5, 4})}));
  Tensor x = rand({6, 3});
  expect_equal(traced(x), foo(x));
}

TEST(TestTracer, test_trace_slice_setitem_dynamic_shape) {
  auto slice_setitem = [](const Tensor& x, const Tensor& y) {
    put_at(x, {Slice(), 2}, y + 1);
    return x;
  };
  Tensor x = randn({3, 4});
  TracedFunction traced = trace(slice_setitem, args({x, at(x, {Slice(), 0})}));
  x = randn({10, 5});
  Tensor column = at(x, {Slice(), 0});
  expect_equal(traced(x.clone(), column), slice_setitem(x.clone(), column));
}

// --- indexing
// ------------------------------------------------------------------------------------------------

TEST(TestTracer, test_trace_index) {
  Tensor x = from_data<float>({0.4f}).set_requires_grad(), y = from_data<int64_t>({0});
  auto fn = [](const Tensor& t, const Tensor& i) { return at(t, i); };
  TracedFunction traced = trace(fn, args({x, y}));
  expect_equal(traced(x, y), fn(x, y));
  EXPECT_THAT(traced.graph().to_string(), ::testing::HasSubstr("aten.index.Tensor"));
}

TEST(TestTracer, test_trace_index_constant) {
  Tensor x = from_data<float>({0.4f}).set_requires_grad();
  auto fn = [](const Tensor& t) { return at(t, 0); };
  TracedFunction traced = trace(fn, ones({1}));
  Tensor got = traced(x), wanted = fn(x);
  expect_equal(got, wanted);
  expect_equal(autograd::grad({got}, {x})[0], autograd::grad({wanted}, {x})[0]);
}

TEST(TestTracer, test_index_put) {
  Tensor mask = from_data<bool>({true, true, true, true, false, false, true, true, false}, {3, 3});
  auto test_fn = [](const Tensor& ten, const Tensor& m) {
    put_at(ten, m, ones({6}));
    return ten;
  };
  TracedFunction traced = trace(test_fn, args({zeros({3, 3}), mask}));
  Tensor ten = rand({3, 3});
  Tensor result = traced(ten.clone(), mask);
  expect_equal(result, test_fn(ten.clone(), mask));
  expect_equal(at(result, {0, 0}), ones({}));
  expect_equal(at(result, {1, 1}), at(ten, {1, 1}));
}

TEST(TestTracer, test_trace_indexed_assignment) {
  auto stuff = [](const Tensor& given, const Tensor& y) {
    Tensor x = given.clone();
    put_at(x, 0, y);
    return x;
  };
  Tensor example = rand({3, 4});
  check_trace(stuff, {.reference = args({example, at(example, 0) + 1})});
}

TEST(TestTracer, test_trace_checker_slice_lhs) {
  auto foo = [](const Tensor& x) {
    for (int64_t i = 0; i < 3; ++i) put_at(x, {i, Slice()}, zeros({4}));
    return x;
  };
  check_trace(foo, {.reference = args({rand({3, 4})}), .inputs_require_grads = false});
}

TEST(TestTracer, test_lhs_index_trivial) {
  auto foo = [](const Tensor& y, const Tensor& x) {
    put_at(y, kEllipsis, x);
    return y;
  };
  check_trace(foo, {.reference = args({rand({3, 4}), rand({4})}), .inputs_require_grads = false});
}

TEST(TestTracer, test_index_put_trace_with_view) {
  auto test_index_put = [](const Tensor& target, const Tensor& indices, const Tensor& rhs) {
    put_at(target, indices, rhs);
    return target;
  };
  TracedFunction traced =
      trace(test_index_put, args({rand({100}), from_data<int64_t>({1, 2, 3, 4}), rand({1, 1, 1, 4})}));
  EXPECT_THAT(testing::operators_in(traced.graph()),
              ::testing::ElementsAre("sym_size", "view", "index_put_"));
}

TEST(TestTracer, test_index_put_trace_without_view) {
  auto test_index_put = [](const Tensor& target, const Tensor& indices, const Tensor& rhs) {
    put_at(target, indices, rhs);
    return target;
  };
  TracedFunction traced =
      trace(test_index_put, args({rand({100}), from_data<int64_t>({1, 2, 3, 4}), rand({4})}));
  EXPECT_THAT(testing::operators_in(traced.graph()), ::testing::ElementsAre("index_put_"));
}

}  // namespace
}  // namespace weft
