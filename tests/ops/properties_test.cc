// Results that are not unique by nature are compared by what makes them right.
#include "samples/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Tensor matrix(int64_t rows, int64_t columns, std::vector<double> values) {
  Tensor tensor = allocate_contiguous({rows, columns}, kFloat64);
  std::copy(values.begin(), values.end(), tensor.data<double>());
  return tensor;
}
Tensor vector(std::vector<double> values) {
  Tensor tensor = allocate_contiguous({static_cast<int64_t>(values.size())}, kFloat64);
  std::copy(values.begin(), values.end(), tensor.data<double>());
  return tensor;
}
Tensor indices(std::vector<int64_t> values) {
  Tensor tensor = allocate_contiguous({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return tensor;
}

// A call of `overload` on `self` with further arguments in the sample format.
struct Call {
  Json json;
  Row row;
  Arguments arguments;

  Call(const std::string& overload, const Tensor& self, const std::string& args = "[]")
      : json(JsonObject{{"args", Json::parse(args)}}), row{&json, "id", overload, false} {
    arguments.tensors = {{"self", self}};
  }
};

std::vector<std::string> choices(const Call& call, const Tensor& got, const Tensor& stored) {
  Differences differences;
  compare_choices(differences, "out[1]", "1", call.row, call.arguments, elements_of(got),
                  elements_of(stored));
  return differences.take();
}

TEST(Choices, MayFallOnAnyOfEqualValues) {
  Call topk("aten::topk", vector({1, 5, 5, 2}), R"([["k", 1], ["dim", -1], ["sorted", true]])");
  EXPECT_THAT(choices(topk, indices({1}), indices({1})), IsEmpty());
  EXPECT_THAT(choices(topk, indices({2}), indices({1})), IsEmpty());
  EXPECT_THAT(choices(topk, indices({0}), indices({1})), ElementsAre("out[1]: other values are chosen"));
  EXPECT_THAT(choices(topk, indices({4}), indices({1})), ElementsAre("out[1]: an index is out of range"));
}

TEST(Choices, MayNotRepeat) {
  Call topk("aten::topk", vector({1, 5, 5, 2}), R"([["k", 2], ["dim", 0], ["sorted", true]])");
  EXPECT_THAT(choices(topk, indices({2, 1}), indices({1, 2})), IsEmpty());
  EXPECT_THAT(choices(topk, indices({1, 1}), indices({1, 2})),
              ElementsAre("out[1]: an index is chosen twice"));
}

TEST(Choices, HaveAnOrderUnlessNoneWasAskedFor) {
  Call sorted("aten::topk", vector({1, 5, 4}), R"([["k", 2], ["dim", 0], ["sorted", true]])");
  EXPECT_THAT(choices(sorted, indices({2, 1}), indices({1, 2})),
              ElementsAre("out[1]: other values are chosen"));
  Call unsorted("aten::topk", vector({1, 5, 4}), R"([["k", 2], ["dim", 0], ["sorted", false]])");
  EXPECT_THAT(choices(unsorted, indices({2, 1}), indices({1, 2})), IsEmpty());
}

TEST(Choices, AreUniqueWhenStable) {
  Call stable("aten::sort.stable", vector({1, 1}), R"([["stable", true], ["dim", 0]])");
  Call unstable("aten::sort.stable", vector({1, 1}), R"([["stable", false], ["dim", 0]])");
  EXPECT_EQ(uniqueness_of(stable.row, "1"), Uniqueness::kUnique);
  EXPECT_EQ(uniqueness_of(unstable.row, "1"), Uniqueness::kAmongEquals);
  EXPECT_EQ(uniqueness_of(unstable.row, "0"), Uniqueness::kUnique);
  EXPECT_EQ(uniqueness_of(Call("aten::add.Tensor", vector({1})).row, "0"), Uniqueness::kUnique);
}

TEST(Choices, MoveGradientsWithinALane) {
  Call topk("aten::topk", vector({5, 5, 1}), R"([["dim", 0]])");
  auto compare = [&](const Tensor& got) {
    Differences differences;
    compare_lane_sums(differences, "vjp self", topk.row, elements_of(got), elements_of(vector({3, 0, 0})), 0);
    return differences.take();
  };
  EXPECT_THAT(compare(vector({3, 0, 0})), IsEmpty());
  EXPECT_THAT(compare(vector({0, 3, 0})), IsEmpty());
  EXPECT_EQ(compare(vector({0, 2, 0})).size(), 1u);
}

TEST(NanInputs, AreLeftOutOfGradientsThatDependOnTheLength) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto compare = [&](const std::string& overload, bool is_gradient, const Tensor& got) {
    Call call(overload, vector({1, nan, 2}));
    Elements ours = elements_of(got), stored = elements_of(vector({5, 6, 7}));
    leave_out_nan_inputs(call.row, is_gradient, call.arguments, ours, stored);
    Differences differences;
    differences.compare_values("out", ours, stored, 0);
    return differences.take();
  };
  EXPECT_THAT(compare("aten::hardtanh", true, vector({5, 0, 7})), IsEmpty());
  EXPECT_THAT(compare("aten::hardtanh_backward", false, vector({5, nan, 7})), IsEmpty());
  EXPECT_EQ(compare("aten::hardtanh", true, vector({5, 0, 8})).size(), 1u);
  EXPECT_EQ(compare("aten::hardtanh", false, vector({5, 0, 7})).size(), 1u);
  EXPECT_EQ(compare("aten::relu", true, vector({5, 0, 7})).size(), 1u);
}

std::vector<std::string> decomposition(const Call& call, const std::vector<Tensor>& results) {
  Differences differences;
  check_decomposition(differences, call.row, call.arguments, results);
  return differences.take();
}

TEST(Decomposition, OfEigenvectorsHoldsForEitherSign) {
  const double h = std::sqrt(0.5);
  Call eigh("aten::linalg_eigh", matrix(2, 2, {2, 1, 1, 2}));
  EXPECT_THAT(decomposition(eigh, {vector({1, 3}), matrix(2, 2, {h, h, -h, h})}), IsEmpty());
  EXPECT_THAT(decomposition(eigh, {vector({1, 3}), matrix(2, 2, {-h, -h, h, -h})}), IsEmpty());
  EXPECT_THAT(decomposition(eigh, {vector({1, 3}), matrix(2, 2, {h, h, h, -h})}),
              ElementsAre("A V is not V L"));
  EXPECT_THAT(decomposition(eigh, {vector({1, 3}), matrix(2, 2, {1, h, -1, h})}),
              ElementsAre("the eigenvectors are not orthonormal"));
}

TEST(Decomposition, OfGeneralMatricesHasItsValuesInAnyOrder) {
  Call eigvals("aten::linalg_eigvals", matrix(2, 2, {1, 0, 0, 3}));
  EXPECT_EQ(uniqueness_of(eigvals.row, "0"), Uniqueness::kAnyOrder);
  auto compare = [](const Tensor& got, const Tensor& stored) {
    Differences differences;
    compare_in_any_order(differences, "out[0]", elements_of(got), elements_of(stored), 0);
    return differences.take();
  };
  EXPECT_THAT(compare(vector({3, 1, 2}), vector({1, 2, 3})), IsEmpty());
  EXPECT_EQ(compare(vector({3, 1, 1}), vector({1, 2, 3})).size(), 1u);
}

TEST(Decomposition, ReadsTheTriangleThatWasAskedFor) {
  const double h = std::sqrt(0.5);
  std::vector<Tensor> results = {vector({1, 3}), matrix(2, 2, {h, h, -h, h})};
  Tensor lower = matrix(2, 2, {2, 9, 1, 2});
  EXPECT_THAT(decomposition(Call("aten::linalg_eigh", lower, R"([["UPLO", "L"]])"), results), IsEmpty());
  EXPECT_THAT(decomposition(Call("aten::linalg_eigh", lower, R"([["UPLO", "U"]])"), results).size(), 1);
}

TEST(Decomposition, OfSingularVectorsHolds) {
  Call svd("aten::linalg_svd", matrix(2, 2, {0, 2, 1, 0}));
  EXPECT_THAT(decomposition(svd, {matrix(2, 2, {1, 0, 0, 1}), vector({2, 1}), matrix(2, 2, {0, 1, 1, 0})}),
              IsEmpty());
  EXPECT_THAT(decomposition(svd, {matrix(2, 2, {-1, 0, 0, 1}), vector({2, 1}), matrix(2, 2, {0, -1, 1, 0})}),
              IsEmpty());
  EXPECT_THAT(decomposition(svd, {matrix(2, 2, {1, 0, 0, 1}), vector({2, 1}), matrix(2, 2, {1, 0, 0, 1})}),
              ElementsAre("U S Vh is not the matrix"));
  EXPECT_THAT(decomposition(svd, {matrix(2, 2, {2, 0, 0, 1}), vector({1, 1}), matrix(2, 2, {0, 1, 1, 0})}),
              ElementsAre("the singular vectors are not orthonormal"));
}

}  // namespace
}  // namespace weft::recorded
