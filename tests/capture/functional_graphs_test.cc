// How functional graphs treat what is not a value: sizes and memory of inputs, storages, `.data`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/data.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/func/functionalize.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using testing::close;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ramp;
using testing::values;
using testing::vec;

// --- arguments that end otherwise than they began --------------------------------------------------------

TEST(FunctionalGraphs, EndByHandingOverSizesAndMemory) {
  auto expect_functional = [](FunctionRef<Tensor(const Tensor&, const Tensor&)> f, const char* last) {
    auto run = [&](const Tensor& x, const Tensor& y) { return f(x, y); };
    GraphModule g = make_graph(func::functionalize(run))(ramp({2, 3}), ramp({2, 3}));
    verify(g, Stage::kFunctional);
    EXPECT_THAT(g.code(), HasSubstr(last));
    Tensor x = ramp({2, 3}), y = ramp({2, 3}) + 7, eager_x = x.clone(), eager_y = y.clone();
    Tensor got = g(x, y), expected = f(eager_x, eager_y);
    EXPECT_TRUE(close(got, expected));
    EXPECT_EQ(describe(x).str(), describe(eager_x).str());
    EXPECT_TRUE(close(x, eager_x));
    EXPECT_EQ(x.storage() == y.storage(), eager_x.storage() == eager_y.storage());
  };
  expect_functional([](const Tensor& x, const Tensor& y) { return x.t_() + y.sum(); }, "as_strided_");
  expect_functional([](const Tensor& x, const Tensor& y) { return resize_(x, {2, 2}).add_(1) + y.sum(); },
                    "resize_");
  expect_functional([](const Tensor& x, const Tensor& y) { return set_(x, y).add_(1) * 2; },
                    "aten.set_.source_Tensor");
}

TEST(FunctionalGraphs, EmptiedStoragesStayEvents) {
  auto f = [](const Tensor& x, const Tensor& shard) {
    call("inductor::resize_storage_bytes_", {x, 16});
    x.copy_(shard);
    Tensor used = x * 2;
    call("inductor::resize_storage_bytes_", {x, 0});
    return used;
  };
  Tensor x = vec({0, 0});
  call("inductor::resize_storage_bytes_", {x, 0});
  GraphModule g = make_graph(func::functionalize(f))(x, vec({3, 4}));
  verify(g, Stage::kFunctional);
  EXPECT_THAT(g.code(), Not(HasSubstr("resize_storage_bytes_")));
  EXPECT_EQ(values(g(x, vec({5, 6}))), (std::vector<double>{10, 12}));
  EXPECT_EQ(x.storage()->bytes(), 0u);
  auto release = [](const Tensor& x) {
    Tensor used = x * 2;
    call("inductor::resize_storage_bytes_", {x, 0});
    return used;
  };
  GraphModule h = make_graph(func::functionalize(release))(vec({3, 4}));
  EXPECT_THAT(h.code(), HasSubstr("torch.ops.inductor.resize_storage_bytes_.default(arg0_1, 0)"));
  h.graph().eliminate_dead_code();
  Tensor full = vec({1, 2});
  EXPECT_EQ(values(h(full)), (std::vector<double>{2, 4}));
  EXPECT_EQ(full.storage()->bytes(), 0u);
  auto write_and_release = [](const Tensor& x, const Tensor& y) {
    x.add_(y);
    call("inductor::resize_storage_bytes_", {y, 0});
    return x * 1;
  };
  verify(make_graph(func::functionalize(write_and_release))(vec({3, 4}), vec({1, 2})), Stage::kFunctional);
}

// --- `.data` in captures ---------------------------------------------------------------------------------

TEST(UntrackedDataInCaptures, IsNeverATensorWithoutMemory) {
  auto f = [](const Tensor& x) { return x * autograd::untracked_data(x); };
  const Tensor x = vec({1, 2, 3});
  for (CaptureMode mode : {CaptureMode::kFake, CaptureMode::kSymbolic}) {
    // Without data there is no constant to keep: what `.data` gives is not known to the capture.
    EXPECT_ERROR(make_graph(f, {.mode = mode})(x),
                 "is a fake tensor that is no input of the captured function");
    GraphModule g = make_graph(func::functionalize(f), {.mode = mode})(x);
    EXPECT_TRUE(close(g(x), x * x));
  }
  EXPECT_TRUE(close(make_graph(func::functionalize(f))(x)(x + 1), (x + 1) * (x + 1)));
  EXPECT_THAT(symbolic_trace(f).code(), HasSubstr("detach"));
  EXPECT_TRUE(close(symbolic_trace(f)(x), x * x));
}

}  // namespace
}  // namespace weft
