// Values of tensors as C++ values, and who hears of it.
#include "weft/ops/conversions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(Conversions, GiveNumbersListsAndRows) {
  Tensor x = from_data<int64_t>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(item<double>(full({1}, 3, kInt64)), 3.0);
  EXPECT_EQ(item<int64_t>(full({}, 2.0)), 2);
  EXPECT_TRUE(is_true(full({1, 1}, 2)));
  EXPECT_THAT(to_vector<float>(x.t()), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(to_list(x), Value::list({Value::list({1, 2}), Value::list({3, 4})}));
  EXPECT_EQ(to_list(full({}, 1.5)), Value(1.5));
  std::vector<int64_t> sums;
  for (const Tensor& row : x) sums.push_back(item<int64_t>(row.sum()));
  EXPECT_THAT(sums, ElementsAre(3, 7));
  for (const Tensor& row : zeros({0, 2})) ADD_FAILURE() << describe(row).str();
  EXPECT_ERROR(begin(zeros({})), "iteration over a tensor of no dims");
  EXPECT_ERROR(item<double>(x), "a Tensor with 4 elements cannot be converted to Scalar");
}

TEST(Conversions, AreHeardOf) {
  struct Listener final : ConversionObserver {
    void converting(const Tensor&, const char* what) override { heard.emplace_back(what); }
    void iterating(const Tensor&) override { heard.emplace_back("rows"); }
    std::vector<std::string> heard;
  } listener;
  {
    ConversionObserver::Scope scope(&listener);
    item<double>(ones({1}));
    is_true(ones({1}));
    to_vector<int64_t>(ones({1}));
    to_list(ones({1}));
    begin(ones({1}));
  }
  item<double>(ones({1}));
  EXPECT_THAT(listener.heard,
              ElementsAre("a C++ float", "a C++ boolean", "a C++ array", "a C++ list", "rows"));
}

}  // namespace
}  // namespace weft
