// What an example sees under vmap: types, dims, randomness, results without a batch dim. As PyTorch has it.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/func/func.h"

namespace weft {
namespace {

using func::vmap;
using testing::ramp;
using testing::values;

Tensor sum_of(const Tensor& x, const Tensor& y) { return x + y; }
std::string sizes_of(const Tensor& t) { return describe_sizes(t.sizes()).str(); }

// --- types -----------------------------------------------------------------------------------------------

TEST(VmapTypes, ExamplesWithoutDimsAreLight) {
  EXPECT_EQ(vmap(sum_of)(ones({2}, kFloat64), ones({2, 3})).dtype(), kFloat32);
  EXPECT_EQ(vmap(sum_of)(ones({2, 3}), ones({2}, kFloat64)).dtype(), kFloat32);
  EXPECT_EQ(vmap(sum_of)(ones({2}, kInt64), ones({2, 3}, kUInt8)).dtype(), kUInt8);
  EXPECT_EQ(vmap(sum_of)(ones({2}, kComplex128), ones({2, 3})).dtype(), kComplex64);
  EXPECT_EQ(vmap([](const Tensor& x) { return x / ones({3}); })(ones({2}, kFloat64)).dtype(), kFloat32);
}

TEST(VmapTypes, OfAHigherCategoryTheyStillCount) {
  EXPECT_EQ(vmap(sum_of)(ones({2}, kFloat64), ones({2, 3}, kInt64)).dtype(), kFloat64);
  EXPECT_EQ(vmap(sum_of)(ones({2}), ones({2, 3}, kInt64)).dtype(), kFloat32);
}

TEST(VmapTypes, TwoTensorsWithoutDimsAreAlike) {
  EXPECT_EQ(vmap(sum_of)(ones({2}), ones({2}, kFloat64)).dtype(), kFloat64);
  Tensor outside = full({}, 1.0, kFloat64);
  EXPECT_EQ(vmap([&](const Tensor& x) { return x + outside; })(ones({2})).dtype(), kFloat64);
  EXPECT_EQ(vmap([&](const Tensor& x) { return x + outside; })(ones({2, 3})).dtype(), kFloat32);
}

TEST(VmapTypes, HoldInNestedMaps) {
  auto inner = [](const Tensor& x, const Tensor& y) { return vmap(sum_of)(x, y); };
  EXPECT_EQ(vmap(inner)(ones({2, 2}, kFloat64), ones({2, 2, 3})).dtype(), kFloat32);
  func::VmapOptions first_fixed{.in_dims = {func::kNoDim, 0}}, second_fixed{.in_dims = {0, func::kNoDim}};
  auto outer_only = [&](const Tensor& x, const Tensor& y) { return vmap(sum_of, first_fixed)(x, y); };
  EXPECT_EQ(vmap(outer_only)(ones({2}, kFloat64), ones({2, 2, 3})).dtype(), kFloat32);
  auto inner_only = [&](const Tensor& x, const Tensor& y) { return vmap(sum_of, second_fixed)(x, y); };
  EXPECT_EQ(vmap(inner_only)(ones({2, 2}, kFloat64), ones({2, 3})).dtype(), kFloat32);
}

TEST(VmapTypes, ComparisonsAreInTheCommonType) {
  auto greater = [](const Tensor& x, const Tensor& y) { return x.gt(y); };
  Tensor wide = full({2}, 0.1, kFloat64), narrow = full({2, 1}, 0.1);
  EXPECT_EQ(values(vmap(greater)(wide, narrow)), (std::vector<double>{0, 0}));
}

TEST(VmapTypes, WhereTakesTheWiderType) {
  auto f = [](const Tensor& x, const Tensor& y) { return where(y.gt(0), x, y); };
  EXPECT_EQ(vmap(f)(ones({2}, kFloat64), ones({2, 3})).dtype(), kFloat64);
}

TEST(VmapTypes, WritesDoWhatTheyDoToEachExample) {
  auto f = [](const Tensor& x, const Tensor& a, const Tensor& b) {
    Tensor y = x.clone();
    y.addmm_(a, b, 0.2, 0.6);
    return y;
  };
  Tensor x = ones({2, 2, 2}, kInt64), a = ones({2, 2, 3}, kInt64) * 5, b = ones({2, 3, 2}, kInt64) * 5;
  EXPECT_EQ(values(vmap(f)(x, a, b)), std::vector<double>(8, 0));
  auto add_half = [](const Tensor& t) {
    Tensor y = t.clone();
    y.add_(0.5);
    return y;
  };
  EXPECT_ERROR(vmap(add_half)(ones({2, 3}, kInt64)), "can't be cast to the desired output type");
}

// --- dims ------------------------------------------------------------------------------------------------

TEST(VmapDims, AnEmptyListSqueezesNothing) {
  EXPECT_EQ(sizes_of(vmap([](const Tensor& x) { return x.squeeze(IntSpan{}); })(ones({2, 1, 1}))),
            "[2, 1, 1]");
  auto in_place = [](const Tensor& x) {
    Tensor y = x.clone();
    y.squeeze_(IntSpan{});
    return y;
  };
  EXPECT_EQ(sizes_of(vmap(in_place, {.in_dims = {1}})(ones({1, 2, 1}))), "[2, 1, 1]");
}

TEST(VmapDims, GatherTakesExamplesWithoutDims) {
  auto f = [](const Tensor& x, const Tensor& i) { return gather(x, 0, i); };
  Tensor scalars = testing::vec({1, 2}), rows = testing::ramp({2, 3});
  EXPECT_EQ(values(vmap(f)(scalars, zeros({2}, kInt64))), (std::vector<double>{1, 2}));
  Tensor repeated = vmap(f)(scalars, zeros({2, 3}, kInt64));
  EXPECT_EQ(sizes_of(repeated), "[2, 3]");
  EXPECT_EQ(values(repeated), (std::vector<double>{1, 1, 1, 2, 2, 2}));
  Tensor picked = vmap(f)(rows, from_data(std::vector<int64_t>{2, 1}));
  EXPECT_EQ(sizes_of(picked), "[2]");
  EXPECT_EQ(values(picked), (std::vector<double>{values(rows)[2], values(rows)[4]}));
}

TEST(VmapDims, ScatterTakesExamplesWithoutDims) {
  auto replace = [](const Tensor& x, const Tensor& i, const Tensor& s) { return scatter(x, 0, i, s); };
  auto add = [](const Tensor& x, const Tensor& i, const Tensor& s) { return scatter_add(x, 0, i, s); };
  Tensor scalars = testing::vec({1, 2}), none = zeros({2}, kInt64), first = zeros({2, 1}, kInt64);
  Tensor sources = testing::vec({5, 7});
  EXPECT_EQ(values(vmap(replace)(scalars, none, sources)), (std::vector<double>{5, 7}));
  EXPECT_EQ(values(vmap(add)(scalars, none, sources)), (std::vector<double>{6, 9}));
  Tensor sum = vmap(add)(scalars, first, sources.unsqueeze(1));
  EXPECT_EQ(sizes_of(sum), "[2]");
  EXPECT_EQ(values(sum), (std::vector<double>{6, 9}));
  Tensor rows = zeros({2, 2}, kFloat64), last = ones({2}, kInt64);
  EXPECT_EQ(values(vmap(replace)(rows, last, sources)), (std::vector<double>{0, 5, 0, 7}));
}

// --- randomness ------------------------------------------------------------------------------------------

TEST(VmapRandomness, LikeABatchedTensorIsOneDrawOfAnExamplesSizesForAll) {
  auto noisy = [](const Tensor& t) { return t + randn_like(t); };
  manual_seed(3);
  const Tensor got =
      func::vmap(noisy, {.in_dims = {1}, .randomness = func::Randomness::kSame})(zeros({4, 2}));
  manual_seed(3);
  const Tensor wanted = noisy(zeros({4}));
  for (int64_t i = 0; i < 2; ++i) testing::expect_equal(got.select(0, i), wanted);
}

// Every example gets the numbers that one example alone gets.
TEST(VmapRandomness, SameNumbersGoToEveryExample) {
  using Noise = Tensor (*)(const Tensor&);
  const Noise noises[] = {
      [](const Tensor& t) { return rand_like(t); },
      [](const Tensor& t) { return randn_like(t); },
      [](const Tensor& t) { return randint_like(t, 1000); },
      [](const Tensor& t) { return bernoulli(t, 0.5); },
      [](const Tensor& t) { return dropout(t, 0.5, true); },
      [](const Tensor& t) { return Tensor(t.clone().uniform_()); },
      [](const Tensor& t) { return Tensor(t.clone().normal_(1, 2)); },
      [](const Tensor& t) { return Tensor(t.clone().bernoulli_(0.5)); },
      [](const Tensor& t) {
        Tensor filled = t.clone();
        filled.uniform_();
        return filled;
      },
      [](const Tensor& t) {
        Tensor target = t.clone();
        rand_like_out(target, t);
        return target;
      },
  };
  for (size_t i = 0; i < std::size(noises); ++i)
    for (const int64_t dim : {0, 1}) {
      SCOPED_TRACE(fmt::format("noise {}, dim {}", i, dim));
      const Tensor batch = dim == 0 ? ones({3, 16}) : ones({16, 3});
      manual_seed(3);
      const Tensor got =
          func::vmap(noises[i], {.in_dims = {dim}, .randomness = func::Randomness::kSame})(batch);
      manual_seed(3);
      const Tensor wanted = noises[i](ones({16}));
      ASSERT_EQ(sizes_of(got), "[3, 16]");
      for (int64_t example = 0; example < 3; ++example) testing::expect_equal(got.select(0, example), wanted);
    }
}

TEST(VmapRandomness, DifferentNumbersNeedABatchToGoInto) {
  func::VmapOptions different{.randomness = func::Randomness::kDifferent};
  auto f = [](const Tensor& x) {
    Tensor y = zeros({3});
    y.bernoulli_(0.5);
    return x + y;
  };
  EXPECT_ERROR(vmap(f, different)(ones({2, 3})),
               "Cannot ask for different inplace randomness on an unbatched tensor");
  EXPECT_EQ(sizes_of(vmap(f, {.randomness = func::Randomness::kSame})(ones({2, 3}))), "[2, 3]");
}

// --- results ---------------------------------------------------------------------------------------------

TEST(VmapResults, MayHaveNoBatchDim) {
  auto f = [](const std::vector<Tensor>& args) -> std::vector<Tensor> { return {args[0], ones({2})}; };
  std::vector<Tensor> results = func::vmap_of(f, {.out_dims = {0, func::kNoDim}}).fn()({ones({3, 1})});
  EXPECT_EQ(sizes_of(results[0]), "[3, 1]");
  EXPECT_EQ(sizes_of(results[1]), "[2]");
}

TEST(VmapResults, BatchedOnesNeedADim) {
  auto f = [](const Tensor& x) { return x * 2; };
  EXPECT_ERROR(vmap(f, {.out_dims = {func::kNoDim}})(ones({3, 1})),
               "can not return a batched tensor when out_dim is kNoDim");
}

TEST(VmapBatchNorm, RefusesStatisticsOfAllExamples) {
  const Tensor x = ramp({4, 2, 3}), weight = ones({3}, kFloat64), bias = zeros({3}, kFloat64);
  Tensor mean = zeros({3}, kFloat64), variance = ones({3}, kFloat64);
  auto norm = [&](bool training) {
    return func::vmap([&, training](const Tensor& one) {
      return batch_norm(one, weight, bias, mean, variance, training, 0.1, 1e-5, false);
    });
  };
  EXPECT_USER_ERROR(norm(true)(x),
                    "the running_mean or running_var, which will be updated in place, were not batched");
  EXPECT_EQ(values(mean), (std::vector<double>{0, 0, 0}));
  const Tensor calm = norm(false)(x);
  EXPECT_TRUE(
      testing::close(calm[1], batch_norm(x[1], weight, bias, mean, variance, false, 0.1, 1e-5, false)));
}

TEST(VmapAsStrided, CountsOffsetsFromTheBatch) {
  const Tensor x = ramp({3, 4});
  auto parts = func::vmap([](const Tensor& row) { return row.as_strided({2}, {1}, 1); });
  EXPECT_TRUE(testing::close(parts(x), x.slice(1, 1, 3)));
  auto whole = func::vmap([](const Tensor& row) { return row.as_strided({2, 2}, {2, 1}); });
  EXPECT_TRUE(testing::close(whole(x), x.view({3, 2, 2})));
  auto gradient =
      func::vmap(func::grad([](const Tensor& row) { return (row.as_strided({2}, {1}, 1) * 3).sum(); }));
  EXPECT_EQ(values(gradient(ones({2, 3}, kFloat64))), (std::vector<double>{0, 3, 3, 0, 3, 3}));
}

}  // namespace
}  // namespace weft
