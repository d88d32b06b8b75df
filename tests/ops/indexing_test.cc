// What samples cannot show of indexing: masks, whose sizes depend on data, and writes to repeated indices.
#include <cstring>

#include "ops/table_support.h"
#include "support/expect_error.h"
#include "weft/base/parallel.h"
#include "weft/base/warning.h"
#include "weft/func/func.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"

namespace weft::table {
namespace {

Tensor vector_of(std::initializer_list<double> values) {
  Tensor tensor = allocate_contiguous({static_cast<int64_t>(values.size())}, kFloat64);
  std::copy(values.begin(), values.end(), tensor.data<double>());
  return tensor;
}
Tensor mask_of(std::initializer_list<bool> values) {
  Tensor tensor = allocate_contiguous({static_cast<int64_t>(values.size())}, kBool);
  std::copy(values.begin(), values.end(), tensor.data<bool>());
  return tensor;
}
std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> found;
  for (const Complex<double>& number : recorded::elements_of(tensor).numbers) found.push_back(number.re);
  return found;
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> sizes_of(const Tensor& tensor) {
  return {tensor.plain_sizes().begin(), tensor.plain_sizes().end()};
}

TEST(Masks, PickTheirTrueElements) {
  Tensor x = vector_of({1, 2, 3, 4});
  EXPECT_THAT(numbers(index(x, {mask_of({true, false, false, true})})), ElementsAre(1, 4));
  index_put_(x, {mask_of({false, true, true, false})}, vector_of({8, 9}));
  EXPECT_THAT(numbers(x), ElementsAre(1, 8, 9, 4));
}

TEST(Masks, OfNoDimsAddADim) {
  Tensor x = vector_of({1, 2}), yes = full({}, true), no = full({}, false);
  EXPECT_THAT(sizes_of(index(x, {yes})), ElementsAre(1, 2));
  EXPECT_THAT(sizes_of(index(x, {no})), ElementsAre(0, 2));
}

TEST(Masks, MustFit) {
  try {
    index(vector_of({1, 2, 3}), {mask_of({true, false})});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not match the shape of the indexed tensor"));
  }
}

TEST(Masks, GiveSizesWithoutAValueToFakeTensors) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  Tensor real = vector_of({1, 2, 3, 4}), real_mask = mask_of({true, false, true, true});
  FakeMode mode({.shape_env = env});
  Tensor x = mode.fake_of(real, "x"), mask = mode.fake_of(real_mask, "m");
  Tensor picked = index(x, {mask});
  ASSERT_EQ(picked.dim(), 1);
  EXPECT_TRUE(picked.size(0).is_symbolic());
  EXPECT_FALSE(picked.size(0).hint().has_value());
  EXPECT_TRUE(guard_or(picked.size(0) >= 0, false)) << "a size is known not to be negative";
  EXPECT_TRUE(guard_or(picked.size(0) <= x.numel(), false)) << "and not above the number of elements";
  Tensor written = index_put(x, {mask}, picked);
  EXPECT_TRUE(written.size(0).same_as(x.size(0)));
}

TEST(Masks, AreSharedByABatch) {
  Tensor batch = stack(std::vector<Tensor>{vector_of({1, 2, 3}), vector_of({4, 5, 6})}, 0);
  Tensor mask = mask_of({true, false, true});
  auto pick = func::vmap([&](const func::Tensors& t) { return func::Tensors{index(t[0], {mask})}; });
  EXPECT_THAT(numbers(pick({batch})[0]), ElementsAre(1, 3, 4, 6));
}

TEST(Masks, ThatDifferWithinABatchAreRefused) {
  Tensor masks = stack(std::vector<Tensor>{mask_of({true, false}), mask_of({true, true})}, 0);
  auto pick =
      func::vmap([&](const func::Tensors& t) { return func::Tensors{index(vector_of({1, 2}), {t[0]})}; });
  EXPECT_THROW(pick({masks}), UserError);
}

TEST(Indices, AreNamedWhenTheyAreOutOfRange) {
  Tensor x = vector_of({1, 2, 3}), at = full({2}, 3);
  try {
    index(x, {at});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("index 3 is out of bounds for dimension 0 with size 3"));
  }
}

// Wherever it stands in an index that many threads share.
TEST(Indices, ThatAreBadAreFoundAndNothingIsWrittenInPlace) {
  constexpr int64_t kRows = 300, kColumns = 200;
  for (int64_t index : {int64_t{0}, int64_t{31'007}, kRows * kColumns - 1})
    for (int64_t bad : {int64_t{-1}, kColumns, INT64_MIN, INT64_MAX}) {
      Tensor at = zeros({kRows, kColumns}, kInt64), x = ones({kRows, kColumns}),
             target = zeros({kRows, kColumns});
      at.data<int64_t>()[index] = bad;
      auto expect_named = [&](auto call) {
        try {
          call();
          FAIL() << "no error";
        } catch (const UserError& error) {
          EXPECT_THAT(error.what(), HasSubstr(fmt::format("index {} is out of bounds", bad)));
        }
      };
      expect_named([&] { gather(x, 1, at); });
      expect_named([&] { scatter_add(target, 1, at, x); });
      expect_named([&] { scatter_add_(target, 1, at, x); });
      expect_named([&] { scatter_(target, 1, at, x); });
      EXPECT_EQ(target.sum().item().to_double(), 0);
    }
}

TEST(IndexPut, RefusesArgumentsThatLieInItsTarget) {
  const char* words = "some elements of the input tensor and the written-to tensor refer to a single memory";
  Tensor x = vector_of({1, 2, 3}), reversed = flip(arange(3), {0});
  EXPECT_ERROR(index_put_(x, {reversed}, x), words);
  EXPECT_ERROR(index_put_(x, {reversed}, x.view({3})), words);
  EXPECT_ERROR(index_put_(x.narrow(0, 0, 2), {arange(2)}, x.narrow(0, 1, 2)), words);
  EXPECT_THAT(numbers(x), ElementsAre(1, 2, 3));
  Tensor indices = arange(3);
  EXPECT_ERROR(index_put_(indices, {indices}, ones({}, kInt64)), words);
  // Where strides hide it, values are read first.
  Tensor spread = vector_of({1, 0, 2, 0, 3, 0}), every_second = spread.slice(0, 0, 6, 2);
  index_put_(every_second, {reversed}, spread.slice(0, 0, 6, 2));
  EXPECT_THAT(numbers(spread), ElementsAre(3, 0, 2, 0, 1, 0));
}

TEST(IndexPut, WarnsOfTargetsWhoseElementsAreOne) {
  WarningCapture capture;
  index_put_(zeros({1}).expand({3}), {arange(1)}, ones({1}));
  ASSERT_EQ(capture.warnings().size(), 1u);
  EXPECT_EQ(capture.warnings()[0].message.find("Use of index_put_ on expanded tensors is deprecated."), 0u);
  index_put_(zeros({3}), {arange(1)}, ones({1}));
  EXPECT_EQ(capture.warnings().size(), 1u);
}

// The same bits for any number of threads.
template <typename F>
void expect_same_for_all_threads(F f) {
  int before = num_threads();
  set_num_threads(1);
  Tensor expected = f();
  for (int threads : {2, 3, 5}) {
    set_num_threads(threads);
    Tensor got = f();
    size_t bytes = static_cast<size_t>(got.plain_numel() * item_size(got.dtype()));
    EXPECT_EQ(std::memcmp(got.raw_data(), expected.raw_data(), bytes), 0) << threads << " threads";
  }
  set_num_threads(before);
}

TEST(RepeatedIndices, AddUpInOneOrder) {
  auto scope = fork_rng();
  manual_seed(3);
  Tensor values = randn({5000, 70}), rows = randint(50, {5000}), zeros_ = zeros({50, 70});
  expect_same_for_all_threads([&] { return index_put(zeros_, {rows}, values, true); });
  expect_same_for_all_threads([&] { return index_put(zeros_, {rows}, values, false); });
  expect_same_for_all_threads([&] { return embedding_dense_backward(values, rows, 50, 7, true); });
}

TEST(Nonzero, FindsAllInALargeMask) {
  auto scope = fork_rng();
  manual_seed(4);
  Tensor x = randint(2, {300, 700});
  Tensor found = nonzero(x);
  EXPECT_EQ(found.size(0).plain(), item(sum(x)).to_int());
  Tensor picked = index(x, unbind(found, 1));
  EXPECT_TRUE(item(all(picked)).to_bool());
  EXPECT_EQ(item(sum(masked_select(x, x == 1))).to_int(), found.size(0).plain());
}

}  // namespace
}  // namespace weft::table
