// Numbers read out of tensors while a graph is made from real ones: which PyTorch's make_fx allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/core/from_data.h"
#include "weft/func/control_flow.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename F>
GraphModule captured(F f, MakeGraphOptions options = {}) {
  options.arg_names = "x";
  return make_graph(f, std::move(options))(from_data<float>({0.5, 1, 2}));
}

const char* const kItem =
    "make_graph: It appears that you're trying to get value out of a tracing tensor with "
    "aten._local_scalar_dense.default - erroring out! It's likely that this is caused by data-dependent "
    "control flow or similar. It may be possible to capture this with CaptureMode::kSymbolic; "
    "allow_data_reads makes what this run reads a constant of the graph";

TEST(DataReads, OfTracedTensorsAreErrors) {
  EXPECT_ERROR(captured([](const Tensor& x) { return x * x.sum().item(); }), kItem);
  EXPECT_ERROR(captured([](const Tensor& x) { return x * x.detach().sum().item(); }), kItem);
  EXPECT_ERROR(captured([](const Tensor& x) { return (x.sum() > 0).item().to_bool() ? x + 1 : x - 1; }),
               kItem);
  EXPECT_ERROR(captured(func::grad([](const Tensor& x) { return (x * x.sum().item()).sum(); })), kItem);
  EXPECT_ERROR(captured([](const Tensor& x) { return equal(x, x) ? x + 1 : x; }), "with aten.equal.default");
  EXPECT_ERROR(captured([](const Tensor& x) { return allclose(x, x) ? x + 1 : x; }),
               "with aten.allclose.default");
  EXPECT_ERROR(captured([](const Tensor& x) { return x * x.sum().item(); }, {.pre_dispatch = true}),
               "with aten.item.default");
  // What operators make is traced too, whatever it is made from.
  EXPECT_ERROR(captured([](const Tensor& x) { return x * ones({}).item(); }), kItem);
  EXPECT_ERROR(captured([](const Tensor& x) { return x * rand({}).item(); }), kItem);
  EXPECT_ERROR(captured([c = from_data<float>({2})](const Tensor& x) { return x * (c + 1).item(); }), kItem);
}

TEST(DataReads, MayBeAllowed) {
  GraphModule g = captured([](const Tensor& x) { return x * x.sum().item(); }, {.allow_data_reads = true});
  EXPECT_EQ(g.code(), R"(


def forward(self, x_1):
    mul = torch.ops.aten.mul.Tensor(x_1, 3.5);  x_1 = None
    return mul
    )");
}

TEST(DataReads, OfFakeTensorsHaveTheirOwnRules) {
  GraphModule g =
      captured([](const Tensor& x) { return x * x.sum().item(); }, {.mode = CaptureMode::kSymbolic});
  EXPECT_THAT(g.code(), HasSubstr("_local_scalar_dense = torch.ops.aten._local_scalar_dense.default(sum_1)"));
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.aten.mul.Tensor(x_1, _local_scalar_dense)"));
}

struct Net : nn::Module {
  Tensor w = parameter("w", from_data<float>({2}));
  Tensor forward(const Tensor& x) { return x * w.item() + w; }
  WEFT_ARGS(x)
};

TEST(DataReads, OfTensorsThatAreNoInputs) {
  const Tensor c = from_data<float>({2});
  GraphModule g = captured([&](const Tensor& x) { return x * c.item(); }, {.keep_dead_code = true});
  EXPECT_EQ(g.code(), R"(


def forward(self, x_1):
    mul = torch.ops.aten.mul.Tensor(x_1, 2.0);  x_1 = None
    return mul
    )");
  // Also after a use, but not after a write.
  EXPECT_THAT(captured([&](const Tensor& x) { return x * c * c.item(); }).code(),
              HasSubstr("mul.Tensor(mul, 2.0)"));
  EXPECT_ERROR(captured([&](const Tensor& x) {
                 c.add_(x.sum());
                 return x * c.item();
               }),
               kItem);
  EXPECT_THAT(make_graph(Net())(ones({3})).code(), HasSubstr("mul.Tensor(x_1, 2.0)"));
}

TEST(DataReads, OfSingleNumbersFromLiterals) {
  auto number = [] { return from_data<float>({3}, {}); };
  EXPECT_THAT(captured([&](const Tensor& x) { return x * number().item(); }).code(),
              HasSubstr("mul.Tensor(x_1, 3.0)"));
  EXPECT_THAT(captured([&](const Tensor& x) { return x * (number() + 1).item(); }).code(),
              HasSubstr("mul.Tensor(x_1, 4.0)"));
  EXPECT_THAT(captured([&](const Tensor& x) { return x * number().add_(1).item(); }).code(),
              HasSubstr("mul.Tensor(x_1, 4.0)"));
  EXPECT_THAT(captured([&](const Tensor& x) { return x * number().view({1, 1}).item(); }).code(),
              HasSubstr("mul.Tensor(x_1, 3.0)"));
  const Tensor c = from_data<float>({2});
  EXPECT_THAT(captured([&](const Tensor& x) { return x * (number() + c).item(); }).code(),
              HasSubstr("mul.Tensor(x_1, 5.0)"));
  EXPECT_ERROR(captured([&](const Tensor& x) { return x * (number() + x.sum()).item(); }), kItem);
  // Several numbers are too much to know.
  EXPECT_ERROR(captured([](const Tensor& x) { return x * from_data<float>({3, 1}).select(0, 0).item(); }),
               kItem);
  // A number that data went into, by any name.
  EXPECT_ERROR(captured([&](const Tensor& x) {
                 const Tensor t = number(), view = t.view({1});
                 t.add_(x.sum());
                 return x * view.item();
               }),
               kItem);
}

TEST(DataReads, OfConditionsBelongToTheOperator) {
  auto f = [](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [](const Tensor& a) { return a + 1; }, [](const Tensor& a) { return a - 1; }, x);
  };
  GraphModule g = captured(f);
  EXPECT_THAT(g.code(), HasSubstr("torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0"));
}

}  // namespace
}  // namespace weft
