// Backward operators called with arguments that do not fit each other: an error names the operator and the
// argument, for tensors with memory and without.
#include <gtest/gtest.h>

#include <functional>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::expect_equal;

struct BadCall {
  const char* name;
  // Makes the call; `as` gives each tensor its memory, or takes it away.
  std::function<void(const std::function<Tensor(const Tensor&)>& as)> call;
  const char* words;
};
std::ostream& operator<<(std::ostream& out, const BadCall& call) { return out << call.name; }

const std::array<bool, 3> kAll{true, true, true};

class BackwardChecks : public ::testing::TestWithParam<BadCall> {};
TEST_P(BackwardChecks, RefuseWhatDoesNotFit) {
  EXPECT_USER_ERROR(GetParam().call([](const Tensor& t) { return t; }), GetParam().words);
}
TEST_P(BackwardChecks, RefuseItWithoutMemoryToo) {
  FakeMode mode;
  EXPECT_USER_ERROR(GetParam().call([&](const Tensor& t) { return mode.fake_of(t); }), GetParam().words);
}

#define WEFT_CALL(...) [](const std::function<Tensor(const Tensor&)>& as) { __VA_ARGS__; }

const BadCall kPooling[] = {
    {"avg_batch",
     WEFT_CALL(avg_pool2d_backward(as(ones({3, 2, 2, 2})), as(ones({1, 2, 4, 4})), {2, 2}, {2, 2}, {0, 0},
                                   false, true, {})),
     "avg_pool2d_backward: expected 'grad_output' to have sizes [1, 2, 2, 2], but got f32[3, 2, 2, 2]"},
    {"avg_scalar",
     WEFT_CALL(
         avg_pool2d_backward(as(ones({1, 3, 4, 4})), as(ones({})), {6, 6}, {3, 3}, {2, 3}, true, true, 2)),
     "avg_pool2d_backward: expected 3D (unbatched) or 4D (batched) input"},
    {"avg_type",
     WEFT_CALL(avg_pool2d_backward(as(ones({1, 2, 2, 2}, kFloat64)), as(ones({1, 2, 4, 4})), {2, 2}, {2, 2},
                                   {0, 0}, false, true, {})),
     "avg_pool2d_backward: expected scalar type float32 but found float64 for 'grad_output'"},
    {"max_channels",
     WEFT_CALL(max_pool2d_with_indices_backward(as(ones({1, 9, 3, 3})), as(ones({1, 2, 6, 6})), {2, 2},
                                                {2, 2}, {0, 0}, {1, 1}, false,
                                                as(zeros({1, 2, 3, 3}, kInt64)))),
     "expected 'grad_output' to have sizes [1, 2, 3, 3]"},
    {"max_indices",
     WEFT_CALL(max_pool2d_with_indices_backward(as(ones({1, 2, 3, 3})), as(ones({1, 2, 6, 6})), {2, 2},
                                                {2, 2}, {0, 0}, {1, 1}, false,
                                                as(zeros({1, 2, 3, 2}, kInt64)))),
     "expected 'indices' to have sizes [1, 2, 3, 3]"},
    {"max_index_type",
     WEFT_CALL(max_pool2d_with_indices_backward(as(ones({1, 2, 3, 3})), as(ones({1, 2, 6, 6})), {2, 2},
                                                {2, 2}, {0, 0}, {1, 1}, false,
                                                as(zeros({1, 2, 3, 3}, kInt32)))),
     "expected scalar type int64 but found int32 for 'indices'"},
    {"adaptive_rank", WEFT_CALL(_adaptive_avg_pool2d_backward(as(ones({1})), as(ones({1, 2, 6, 6})))),
     "adaptive_avg_pool2d_backward: expected 3D (unbatched) or 4D (batched) input, but got sizes: [1]"},
    {"adaptive_batch",
     WEFT_CALL(_adaptive_avg_pool2d_backward(as(ones({9, 9, 3, 3})), as(ones({1, 2, 6, 6})))),
     "expected 'grad_output' to have sizes [1, 2, 3, 3]"},
    {"adaptive_empty",
     WEFT_CALL(_adaptive_avg_pool2d_backward(as(ones({1, 2, 0, 3})), as(ones({1, 2, 6, 6})))),
     "non-zero size for non-batch dimensions"},
};
INSTANTIATE_TEST_SUITE_P(Pooling, BackwardChecks, ::testing::ValuesIn(kPooling),
                         [](const auto& info) { return std::string(info.param.name); });

const BadCall kLosses[] = {
    {"nll_grad",
     WEFT_CALL(nll_loss_backward(as(ones({2})), as(ones({3, 5})), as(zeros({3}, kInt64)), {}, 0, -100,
                                 as(ones({})))),
     "nll_loss_backward: expected 'grad_output' to have sizes [3], but got f32[2]"},
    {"nll_reduced",
     WEFT_CALL(nll_loss_backward(as(ones({2})), as(ones({3, 5})), as(zeros({3}, kInt64)), {}, 1, -100,
                                 as(ones({})))),
     "expected 'grad_output' to have 1 elements"},
    {"nll_matrix",
     WEFT_CALL(nll_loss_backward(as(ones({1, 1})), as(ones({3, 5})), as(zeros({3}, kInt64)), {}, 1, -100,
                                 as(ones({})))),
     "Expected a single element grad_output tensor, but got: [1, 1]"},
    {"nll_total",
     WEFT_CALL(nll_loss_backward(as(ones({})), as(ones({3, 5})), as(zeros({3}, kInt64)), {}, 1, -100,
                                 as(ones({0})))),
     "expected 'total_weight' to have 1 elements"},
    {"nll_total_type",
     WEFT_CALL(nll_loss_backward(as(ones({})), as(ones({3, 5})), as(zeros({3}, kInt64)), {}, 1, -100,
                                 as(ones({}, kFloat64)))),
     "expected scalar type float32 but found float64 for 'total_weight'"},
    {"nll_weight_type",
     WEFT_CALL(nll_loss_forward(as(ones({3, 5})), as(zeros({3}, kInt64)), as(ones({5}, kFloat64)), 1, -100)),
     "nll_loss: expected scalar type float32 but found float64 for 'weight'"},
    {"nll2d",
     WEFT_CALL(nll_loss2d_backward(as(ones({2})), as(ones({3, 5, 2, 2})), as(zeros({3, 2, 2}, kInt64)), {}, 0,
                                   -100, as(ones({})))),
     "nll_loss2d_backward: expected 'grad_output' to have sizes [3, 2, 2]"},
    {"mse_integers",
     WEFT_CALL(mse_loss_backward(as(ones({3})), as(ones({3}, kInt64)), as(ones({3}, kInt64)), 0)),
     "mse_loss_backward: result type Float can't be cast"},
};
INSTANTIATE_TEST_SUITE_P(Losses, BackwardChecks, ::testing::ValuesIn(kLosses),
                         [](const auto& info) { return std::string(info.param.name); });

const BadCall kNorms[] = {
    {"softmax_sizes",
     WEFT_CALL(_softmax_backward_data(as(ones({5, 1, 3, 4})), as(ones({5, 3, 4})), 1, kFloat32)),
     "_softmax_backward_data: expected 'grad_output' to have sizes [5, 3, 4]"},
    {"log_softmax_sizes",
     WEFT_CALL(_log_softmax_backward_data(as(ones({5, 1})), as(ones({5, 3})), 1, kFloat32)),
     "_log_softmax_backward_data: expected 'grad_output' to have sizes [5, 3]"},
    {"softmax_type",
     WEFT_CALL(_softmax_backward_data(as(ones({5, 3}, kFloat64)), as(ones({5, 3})), 1, kFloat32)),
     "expected scalar type float32 but found float64 for 'grad_output'"},
    {"softmax_integers",
     WEFT_CALL(_softmax_backward_data(as(ones({5, 3}, kInt64)), as(ones({5, 3}, kInt64)), 1, kInt64)),
     "\"softmax_backward_lastdim_kernel_impl\" not implemented for 'int64'"},
    {"softmax_complex",
     WEFT_CALL(_log_softmax_backward_data(as(ones({5, 3}, kComplex64)), as(ones({5, 3}, kComplex64)), 1,
                                          kComplex64)),
     "\"log_softmax_backward_lastdim_kernel_impl\" not implemented for 'complex64'"},
    {"layer_norm_grad",
     WEFT_CALL(native_layer_norm_backward(as(ones({1, 2})), as(ones({3, 4})), {4}, as(ones({3, 1})),
                                          as(ones({3, 1})), {}, {}, kAll)),
     "native_layer_norm_backward: expected 'grad_out' to have sizes [3, 4]"},
    {"layer_norm_mean",
     WEFT_CALL(native_layer_norm_backward(as(ones({3, 4})), as(ones({3, 4})), {4}, as(ones({1, 1})),
                                          as(ones({3, 1})), {}, {}, kAll)),
     "expected 'mean' to have 3 elements"},
    {"layer_norm_weight",
     WEFT_CALL(native_layer_norm(as(ones({3, 4})), {4}, as(ones({4}, kUInt8)), {}, 1e-5)),
     "native_layer_norm: mixed dtype (CPU): expect parameter to have scalar type of Float, but 'weight' is "
     "u8[4]"},
    {"layer_norm_double",
     WEFT_CALL(native_layer_norm(as(ones({3, 4}, kFloat64)), {4}, as(ones({4})), as(ones({4})), 1e-5)),
     "mixed dtype (CPU): all inputs must share same datatype"},
    {"layer_norm_bias",
     WEFT_CALL(native_layer_norm(as(ones({3, 4})), {4}, as(ones({4})), as(ones({4}, kFloat64)), 1e-5)),
     "expected scalar type float32 but found float64 for 'bias'"},
    {"batch_norm_grad",
     WEFT_CALL(native_batch_norm_backward(as(ones({1})), as(ones({2, 3, 4})), {}, {}, {}, as(ones({3})),
                                          as(ones({3})), true, 1e-5, kAll)),
     "native_batch_norm_backward: expected 'grad_out' to have sizes [2, 3, 4]"},
    {"batch_norm_saved",
     WEFT_CALL(native_batch_norm_backward(as(ones({2, 3})), as(ones({2, 3})), {}, {}, {}, as(ones({1})),
                                          as(ones({3})), true, 1e-5, kAll)),
     "expected 'save_mean' to have 3 elements"},
    {"batch_norm_none",
     WEFT_CALL(native_batch_norm_backward(as(ones({2, 3})), as(ones({2, 3})), {}, {}, {}, {}, {}, false, 1e-5,
                                          kAll)),
     "'running_mean' must be defined when train is false"},
    {"batch_norm_mixed",
     WEFT_CALL(native_batch_norm(as(ones({2, 3})), as(ones({3}, kFloat64)), {}, {}, {}, true, 0.1, 1e-5)),
     "batch_norm: mixed dtype (CPU): expect parameter to have scalar type of Float"},
    {"batch_norm_running",
     WEFT_CALL(native_batch_norm(as(ones({2, 3})), as(ones({3})), {}, as(ones({3}, kFloat64)),
                                 as(ones({3}, kFloat64)), true, 0.1, 1e-5)),
     "expected scalar type float32 but found float64 for 'running_mean'"},
    {"group_norm_mean",
     WEFT_CALL(native_group_norm_backward(as(ones({2, 4, 3})), as(ones({2, 4, 3})), as(ones({2})),
                                          as(ones({2, 2})), {}, 2, 4, 3, 2, kAll)),
     "native_group_norm_backward: expected 'mean' to have 4 elements"},
    {"group_norm_grad",
     WEFT_CALL(native_group_norm_backward(as(ones({2, 4})), as(ones({2, 4, 3})), as(ones({2, 2})),
                                          as(ones({2, 2})), {}, 2, 4, 3, 2, kAll)),
     "expected 'grad_out' to have 24 elements"},
};
INSTANTIATE_TEST_SUITE_P(Norms, BackwardChecks, ::testing::ValuesIn(kNorms),
                         [](const auto& info) { return std::string(info.param.name); });

const BadCall kOthers[] = {
    {"select", WEFT_CALL(select_backward(as(ones({5, 2})), {3, 5}, 0, 0)),
     "select_backward: expected 'grad_output' to broadcast to sizes [5], but got f32[5, 2]"},
    {"slice", WEFT_CALL(slice_backward(as(ones({5, 2})), {3, 5}, 0, 0, 1, 1)),
     "slice_backward: expected 'grad_output' to broadcast to sizes [1, 5]"},
    {"diagonal", WEFT_CALL(diagonal_backward(as(ones({5})), {3, 3}, 0, 0, 1)),
     "diagonal_backward: expected 'grad_output' to broadcast to sizes [3]"},
    {"embedding", WEFT_CALL(embedding_dense_backward(as(ones({1, 2})), as(zeros({3}, kInt64)), 4, -1, false)),
     "embedding_dense_backward: expected 'grad_output' to have 6 elements"},
    {"convolution_weight",
     WEFT_CALL(convolution_backward(as(ones({1, 2, 2, 1})), as(ones({1, 4, 8, 8})), as(ones({})),
                                    SymIntSpan({2}), {3, 2}, {2, 1}, {4, 4}, false, {0, 0}, 2, kAll)),
     "convolution_backward: weight should have at least three dimensions"},
    {"convolution_grad",
     WEFT_CALL(convolution_backward(as(ones({1, 1, 9, 9})), as(ones({1, 4, 6, 5})), as(ones({1, 4, 2, 3})),
                                    SymIntSpan({1}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, kAll)),
     "convolution_backward: expected 'grad_output' to have sizes [1, 1, 5, 3]"},
    {"convolution_rank",
     WEFT_CALL(convolution_backward(as(ones({1, 1, 9})), as(ones({1, 4, 6, 5})), as(ones({1, 4, 2, 3})),
                                    SymIntSpan({1}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, kAll)),
     "to have the same number of dimensions, but got: 4 and 3"},
    {"convolution_type",
     WEFT_CALL(convolution_backward(as(ones({1, 1, 5, 3})), as(ones({1, 4, 6, 5}, kBool)),
                                    as(ones({1, 4, 2, 3})), SymIntSpan({1}), {1, 1}, {0, 0}, {1, 1}, false,
                                    {0, 0}, 1, kAll)),
     "should be the same"},
};
INSTANTIATE_TEST_SUITE_P(Others, BackwardChecks, ::testing::ValuesIn(kOthers),
                         [](const auto& info) { return std::string(info.param.name); });

// --- what is accepted ------------------------------------------------------------------------------------

TEST(BackwardOfViews, BroadcastsItsGradient) {
  expect_equal(select_backward(testing::vec({2}), {2, 3}, 0, 1),
               testing::vec({0, 0, 0, 2, 2, 2}).view({2, 3}));
  expect_equal(slice_backward(testing::vec({1, 2}), {3, 2}, 0, 1, 3, 1),
               testing::vec({0, 0, 1, 2, 1, 2}).view({3, 2}));
  expect_equal(diagonal_backward(testing::vec({3}), {2, 2}, 0, 0, 1),
               testing::vec({3, 0, 0, 3}).view({2, 2}));
}

TEST(ConvolutionBackward, FindsTheSizeOfTheBiasItself) {
  auto results = convolution_backward(ones({1, 3, 4, 4}), ones({1, 2, 4, 4}), ones({3, 2, 1, 1}),
                                      SymIntSpan({7}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, kAll);
  expect_equal(std::get<2>(results), full({3}, 16.0));
}

TEST(MaxPoolBackward, RefusesPlacesOutsideThePlane) {
  EXPECT_USER_ERROR(max_pool2d_with_indices_backward(ones({1, 1, 1, 1}), ones({1, 1, 2, 2}), {2, 2}, {2, 2},
                                                     {0, 0}, {1, 1}, false, full({1, 1, 1, 1}, 4, kInt64)),
                    "index 4 is out of range for a plane of 4 elements");
}

TEST(LayerNorm, KeepsMomentsInF32BesideParametersOfF32) {
  auto [out, mean, rstd] = native_layer_norm(ones({3, 4}, kBFloat16), {4}, {}, ones({4}), 1e-5);
  EXPECT_EQ(out.dtype(), kBFloat16);
  EXPECT_EQ(mean.dtype(), kFloat32);
  EXPECT_EQ(rstd.dtype(), kFloat32);
}

TEST(BatchNorm, TakesAWeightOfAnyShape) {
  Tensor x = testing::ramp({2, 3, 4}), weight = testing::vec({1, 2, 3}), none;
  auto flat = native_batch_norm(x, weight, none, none, none, true, 0.1, 1e-5);
  auto column = native_batch_norm(x, weight.view({3, 1}), none, none, none, true, 0.1, 1e-5);
  expect_equal(std::get<0>(column), std::get<0>(flat));
}

}  // namespace
}  // namespace weft
