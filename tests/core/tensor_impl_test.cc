#include "weft/core/tensor_impl.h"

#include <gtest/gtest.h>

#include <thread>

#include "weft/extend.h"

namespace weft {
namespace {

std::vector<int64_t> plain(SymIntSpan list) { return list.plain().vec(); }

TEST(TensorImpl, TakesAGeometryFromItsOwnLists) {
  Tensor t = empty_strided({2, 3}, {1, 2});
  t.impl()->set_geometry(t.strides(), t.sizes());
  EXPECT_EQ(plain(t.sizes()), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(plain(t.strides()), (std::vector<int64_t>{2, 3}));
  t = empty({2, 3, 4});
  t.impl()->set_contiguous(SymIntSpan(ListSpan<SymInt>(t.sizes().data() + 1, 2)));
  EXPECT_EQ(plain(t.sizes()), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(plain(t.strides()), (std::vector<int64_t>{4, 1}));
}

TEST(TensorImpl, HoldsMoreDimsThanFitInside) {
  std::vector<int64_t> sizes(20, 1);
  sizes[3] = 2;
  sizes[19] = 3;
  Tensor t = zeros(sizes), sum = t + t;
  EXPECT_EQ(plain(sum.sizes()), sizes);
  EXPECT_EQ(plain(sum.transpose(3, 19).sizes())[3], 3);
}

TEST(TensorImpl, WithoutElementsPointsSomewhere) {
  const Tensor nothing = allocate_contiguous({3, 0}, kFloat64);
  EXPECT_NE(nothing.raw_data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(nothing.raw_data()) % 64, 0u);
}

TEST(TensorImpl, AViewThatOthersWereMadeFromMayGoFirst) {
  Tensor leaf = ones({2, 3}).set_requires_grad(), base = leaf * 1;
  Tensor view = base.transpose(0, 1), last = view.select(0, 1);
  view = Tensor();
  last.mul_(3);
  base.sum().backward();
  Tensor expected = from_data<float>({1, 3, 1, 1, 3, 1}, {2, 3});
  EXPECT_TRUE((leaf.grad() == expected).all().item().to_bool());
}

TEST(TensorImplThreads, AgreeOnWhatIsFoundOutLate) {
  for (int round = 0; round < 50; ++round) {
    Tensor shared = allocate_contiguous({4, 3}, kFloat32);
    Tensor transposed = alias_with(shared, SymInts{3, 4}, SymInts{1, 3}, 0);
    std::vector<uint64_t> serials(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < serials.size(); ++i)
      threads.emplace_back([&, i] {
        EXPECT_FALSE(transposed.is_contiguous());
        serials[i] = transposed.impl()->serial();
      });
    for (std::thread& thread : threads) thread.join();
    for (uint64_t serial : serials) EXPECT_EQ(serial, transposed.impl()->serial());
  }
}

}  // namespace
}  // namespace weft
