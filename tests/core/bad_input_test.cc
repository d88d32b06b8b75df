#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/ops/fake.h"

// Mistakes that users make, and the words that answer them. None is weft's own fault.

namespace weft {
namespace {

struct Mistake {
  const char* name;
  std::function<void()> make;
  const char* words;
};
std::ostream& operator<<(std::ostream& stream, const Mistake& mistake) { return stream << mistake.name; }

Tensor matrix() { return ones({2, 3}); }
Tensor indices(std::vector<int64_t> values) { return from_data(values); }
constexpr int64_t kHuge = int64_t{1} << 40;
const char* const kDims = "Dimension out of range (expected to be in range of [-2, 1], but got ";

const Mistake kMistakes[] = {
    // Sizes that cannot be.
    {"overflow", [] { empty({kHuge, kHuge}); },
     "a tensor of sizes [1099511627776, 1099511627776] and type float32 needs more bytes than can be "
     "addressed"},
    {"too_many_bytes", [] { empty({int64_t{1} << 62}); },
     "a tensor of sizes [4611686018427387904] and type float32 needs more bytes than can be addressed"},
    {"overflow_inside", [] { zeros({2, kHuge, kHuge}); },
     "a tensor of sizes [2, 1099511627776, 1099511627776] has more elements than an int64 can count"},
    {"negative_size", [] { empty({2, -3}); }, "Trying to create tensor with negative dimension -3: [2, -3]"},
    {"negative_full", [] { full({-1}, 3); }, "Trying to create tensor with negative dimension -1: [-1]"},
    {"from_data", [] { from_data(std::vector<float>{1, 2, 3}, {2, 2}); },
     "from_data: 3 values do not fill sizes [2, 2]"},
    // Dims out of range.
    {"size", [] { matrix().size(2); }, kDims},
    {"size_from_end", [] { matrix().size(-3); }, kDims},
    {"select_dim", [] { matrix().select(2, 0); }, kDims},
    {"transpose", [] { matrix().transpose(0, 5); }, kDims},
    {"unsqueeze", [] { matrix().unsqueeze(4); },
     "Dimension out of range (expected to be in range of [-3, 2], but got 4)"},
    {"squeeze", [] { matrix().squeeze(3); }, kDims},
    {"unbind", [] { matrix().unbind(3); }, kDims},
    {"sum", [] { sum(matrix(), {5}); }, kDims},
    {"sum_twice", [] { sum(matrix(), {0, 0}); }, "dim 0 appears multiple times in the list of dims"},
    {"softmax", [] { softmax(matrix(), -3); }, kDims},
    {"cat_dim", [] { cat({matrix(), matrix()}, 2); }, kDims},
    {"permute_twice", [] { matrix().permute({0, 0}); }, "permute(): duplicate dims are not allowed."},
    {"permute_few", [] { matrix().permute({0}); }, "input.dim() = 2 is not equal to len(dims) = 1"},
    {"diagonal", [] { matrix().diagonal(0, 0, 0); }, "diagonal dimensions cannot be identical 0, 0"},
    // Views that do not fit.
    {"view", [] { matrix().view({4}); }, "shape '[4]' is invalid for input of size 6"},
    {"reshape", [] { matrix().reshape({4, 2}); }, "shape '[4, 2]' is invalid for input of size 6"},
    {"reshape_zero", [] { matrix().reshape({-1, 0}); }, "shape '[-1, 0]' is invalid for input of size 6"},
    {"infer_two", [] { matrix().view({-1, -1}); }, "only one dimension can be inferred"},
    {"view_of_transposed", [] { matrix().t().view({6}); },
     "f32[3, 2] with strides [1, 3] cannot be seen as [6]. Use .reshape(...) instead."},
    {"expand", [] { matrix().expand({2, 4}); },
     "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1"},
    {"expand_few", [] { matrix().expand({3}); },
     "the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor "
     "(2)"},
    {"negative_stride", [] { matrix().as_strided({2, 2}, {-1, 1}); },
     "as_strided: Negative strides are not supported at the moment, got strides: [-1, 1]"},
    {"outside_storage", [] { matrix().as_strided({2, 2}, {10, 1}); },
     "requiring a storage size of 48 are out of bounds for storage of size 24"},
    {"strided_negative_size", [] { matrix().as_strided({-2}, {1}); }, "as_strided: negative size in [-2]"},
    {"strides_and_sizes", [] { matrix().as_strided({2}, {1, 1}); },
     "mismatch in length of strides and shape: [2] and [1, 1]"},
    {"slice_step_zero", [] { matrix().slice(0, 0, 2, 0); }, "slice step must be positive, but got 0"},
    {"slice_step_negative", [] { matrix().slice(0, 0, 2, -1); }, "slice step must be positive, but got -1"},
    {"select_index", [] { matrix().select(0, 2); },
     "select(): index 2 out of range for tensor of size [2, 3] at dimension 0"},
    {"split_negative", [] { split(matrix(), -1); },
     "split expects split_size be non-negative, but got split_size=-1"},
    {"split_zero", [] { split(matrix(), 0); },
     "split_size can only be 0 if dimension size is 0, but got dimension size of 2"},
    {"write_to_expanded", [] { ones({3}).expand({2, 3}).add_(1); },
     "more than one element of the written-to tensor refers to a single memory location"},
    // Shapes that do not go together.
    {"add", [] { matrix() + ones({4}); },
     "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1; the sizes "
     "are [2, 3] and [4]"},
    {"add_in_place", [] { matrix().add_(ones({3, 3})); },
     "The size of tensor a (2) must match the size of tensor b (3)"},
    {"mm", [] { mm(matrix(), matrix()); },
     "mm: mat1 and mat2 shapes cannot be multiplied ([2, 3] and [2, 3])"},
    {"mm_vector", [] { mm(matrix(), ones({3})); }, "mat2 must be a matrix, but it is f32[3]"},
    {"bmm", [] { bmm(matrix(), matrix()); }, "batch1 must be a 3D tensor, but it is f32[2, 3]"},
    {"addmm", [] { addmm(ones({2}), matrix(), matrix()); },
     "addmm: mat1 and mat2 shapes cannot be multiplied"},
    {"linear", [] { linear(matrix(), ones({5, 4})); }, "shapes cannot be multiplied ([2, 3] and [4, 5])"},
    {"cat_nothing", [] { cat({}); }, "expected a non-empty list of Tensors"},
    {"cat_ranks", [] { cat({matrix(), ones({2, 4, 1})}); },
     "Tensors must have same number of dimensions: got 2 and 3"},
    {"cat_sizes", [] { cat({matrix(), ones({5, 4})}); },
     "Expected size 3 but got size 4 for tensor number 1 in the list."},
    {"stack", [] { stack({matrix(), ones({4})}); },
     "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [4] at entry 1"},
    {"layer_norm", [] { layer_norm(matrix(), {4}); }, "but got input of size [2, 3]"},
    {"conv_rank", [] { conv2d(matrix(), matrix()); },
     "conv2d: expected a 4-dimensional weight, but got f32[2, 3]"},
    {"conv_channels", [] { conv2d(ones({1, 3, 8, 8}), ones({4, 2, 3, 3})); },
     "expected input[1, 3, 8, 8] to have 2 channels, but got 3 channels instead"},
    {"conv_kernel", [] { conv2d(ones({1, 1, 2, 2}), ones({1, 1, 3, 3})); },
     "Kernel size can't be greater than actual input size"},
    {"conv_groups", [] { conv2d(ones({1, 4, 8, 8}), ones({3, 2, 3, 3}), {}, {1, 1}, {0, 0}, {1, 1}, 2); },
     "expected weight to be divisible by 2 at dimension 0"},
    {"conv_stride", [] { conv2d(ones({1, 1, 8, 8}), ones({1, 1, 3, 3}), {}, {0, 1}); },
     "non-positive stride is not supported"},
    {"pool", [] { max_pool2d(ones({1, 1, 2, 2}), {3, 3}); },
     "Given input size: [1, 1, 2, 2]. Calculated output size is too small"},
    {"pool_pad", [] { avg_pool2d(ones({1, 1, 8, 8}), {2, 2}, {2, 2}, {2, 2}); },
     "pad should be at most half of effective kernel size"},
    // Types that do not.
    {"add_real_to_integer", [] { ones({2}, kInt64).add_(ones({2})); },
     "result type float32 can't be cast to the desired output type int64; the in-place target is i64[2]"},
    {"divide_in_place", [] { ones({2}, kInt64).div_(2); }, "can't be cast to the desired output type int64"},
    {"bool_minus_bool", [] { ones({2}, kBool) - ones({2}, kBool); },
     "Subtraction, the `-` operator, with two bool tensors is not supported."},
    {"minus_bool", [] { -ones({2}, kBool); }, "\"neg_cpu\" not implemented for 'bool'"},
    {"bitwise", [] { bitwise_and(matrix(), matrix()); }, "\"bitwise_and_cpu\" not implemented for 'float32'"},
    {"mean_of_integers", [] { mean(ones({2}, kInt64)); }, "mean(): could not infer output dtype"},
    {"softmax_of_integers", [] { softmax(ones({2}, kInt64), 0); }, "not implemented for 'int64'"},
    {"gather_index", [] { gather(matrix(), 0, ones({1, 1})); },
     "gather(): Expected dtype int64 for index, but got float32"},
    {"conv_types", [] { conv2d(ones({1, 1, 4, 4}, kFloat64), ones({1, 1, 3, 3})); },
     "Input type (float64) and weight type (float32) should be the same"},
    {"random_integers", [] { rand({2}, kInt64); }, "\"uniform\" not implemented for 'int64'"},
    {"gradient_of_integers", [] { ones({2}, kInt64).set_requires_grad(); },
     "only Tensors of floating point and complex dtype can require gradients, but this is i64[2]"},
    // Values that are not possible.
    {"index_select", [] { index_select(matrix(), 0, indices({5})); },
     "index out of range in self: 5 for dimension 0 with size 2"},
    {"gather", [] { gather(matrix(), 0, from_data(std::vector<int64_t>{5}, {1, 1})); },
     "gather(): index 5 is out of bounds for dimension 0 with size 2"},
    {"target", [] { cross_entropy_loss(matrix(), indices({0, 9})); }, "Target 9 is out of bounds."},
    {"bernoulli", [] { bernoulli(full({2}, 1.5)); }, "bernoulli expects p to be in [0, 1], but got p=1.5"},
    {"dropout", [] { dropout(matrix(), 1.5, true); },
     "dropout probability has to be between 0 and 1, but got 1.5"},
    {"randint", [] { randint(5, 5, {2}); },
     "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"},
    {"clamp", [] { matrix().clamp(std::nullopt, std::nullopt); },
     "At least one of 'min' or 'max' must not be None"},
    {"item", [] { matrix().item(); }, "a Tensor with 6 elements cannot be converted to Scalar"},
    {"item_of_nothing", [] { empty({0}).item(); }, "a Tensor with 0 elements cannot be converted to Scalar"},
    {"amax_of_nothing", [] { amax(empty({0, 3}), {0}); },
     "amax(): Expected reduction dim 0 to have non-zero size."},
    {"undefined", [] { add(Tensor(), matrix()); },
     "aten::add.Tensor: argument 'self' is an undefined tensor"},
    {"undefined_second", [] { mm(matrix(), Tensor()); }, "aten::mm: argument 'mat2' is an undefined tensor"},
};

class BadInput : public ::testing::TestWithParam<Mistake> {};

// What is answered without the call of an operator.
const std::set<std::string_view> kNoOperators = {
    "size", "size_from_end", "from_data", "gradient_of_integers", "undefined", "undefined_second"};

TEST_P(BadInput, IsAnsweredInWords) {
  EXPECT_USER_ERROR(GetParam().make(), GetParam().words);
  // Calls of operators are named, with their arguments.
  if (!kNoOperators.contains(GetParam().name))
    EXPECT_USER_ERROR(GetParam().make(), "\n  while calling aten::");
}

TEST(BadCalls, NameOperatorArgumentsAndValues) {
  EXPECT_USER_ERROR(sum(matrix(), {5}), "while calling aten::sum.dim_IntList(self=f32[2, 3], dim=[5])");
  EXPECT_USER_ERROR(matrix().set_requires_grad().select(0, 7),
                    "while calling aten::select.int(self=f32[2, 3], dim=0, index=7)");
  EXPECT_USER_ERROR(cross_entropy_loss(matrix(), ones({7}, kInt64)),
                    "while calling aten::cross_entropy_loss(self=f32[2, 3], target=i64[7])");
  FakeMode fake;
  EXPECT_USER_ERROR(mm(zeros({2, 3}), zeros({4, 5})),
                    "while calling aten::mm(self=f32[2, 3], mat2=f32[4, 5])");
}

INSTANTIATE_TEST_SUITE_P(All, BadInput, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft
