#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"

namespace weft {
namespace {

using testing::values;

TEST(FromBlob, IsTheCallersMemory) {
  double memory[6] = {0, 1, 2, 3, 4, 5};
  Tensor x = from_blob(memory, {2, 3});
  EXPECT_EQ(describe(x).str(), "f64[2, 3]");
  EXPECT_EQ(x.raw_data(), memory);
  memory[4] = 40;
  EXPECT_EQ(values(x), (std::vector<double>{0, 1, 2, 3, 40, 5}));
  x.add_(1);
  EXPECT_EQ(memory[0], 1);
  EXPECT_ERROR(x.resize_({7}), "borrowed");
}

TEST(FromBlob, TakesATypeAndStrides) {
  unsigned char memory[6] = {0, 1, 2, 3, 4, 5};
  Tensor columns = from_blob(memory, {3, 2}, kUInt8, {.strides = {{1, 3}}});
  EXPECT_EQ(describe(columns).str(), "u8[3, 2]");
  EXPECT_EQ(values(columns), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(from_blob(memory, {0, 4}).plain_numel(), 0);
  EXPECT_EQ(values(from_blob(memory, {})), (std::vector<double>{0}));
}

TEST(FromBlob, GivesTheMemoryBackAfterTheLastView) {
  float memory[4] = {1, 2, 3, 4};
  void* given_back = nullptr;
  Tensor part;
  {
    Tensor whole = from_blob(memory, {4}, {.deleter = [&](void* p) { given_back = p; }});
    part = whole.slice(0, 2);
  }
  EXPECT_EQ(given_back, nullptr);
  EXPECT_EQ(values(part), (std::vector<double>{3, 4}));
  part = {};
  EXPECT_EQ(given_back, memory);
}

TEST(FromBlob, RefusesWhatIsNoLayout) {
  float memory[4] = {};
  bool is_given_back = false;
  const BlobOptions options{.strides = {{1}}, .deleter = [&](void*) { is_given_back = true; }};
  EXPECT_ERROR(from_blob(memory, {2, 2}, options), "from_blob: 1 strides do not fit sizes [2, 2]");
  EXPECT_FALSE(is_given_back) << "after an error the memory is still the caller's";
  EXPECT_ERROR(from_blob(memory, {-1}), "sizes must not be negative, but are [-1]");
  EXPECT_ERROR(from_blob(memory, {2}, {.strides = {{-1}}}), "strides must not be negative, but are [-1]");
  EXPECT_ERROR(from_blob(static_cast<float*>(nullptr), {2}), "sizes [2] is a null pointer");
  EXPECT_ERROR(from_blob(memory, {int64_t{1} << 62, 8}), "more bytes than can be addressed");
}

TEST(FromBlob, IsAConstantOfACapture) {
  GraphModule graph;
  bool is_given_back = false;
  {
    std::vector<double> memory = {1, 2, 3};
    auto f = [&](const Tensor& x) {
      return x + from_blob(memory.data(), {3}, {.deleter = [&](void*) { is_given_back = true; }});
    };
    graph = make_graph(f)(zeros({3}, kFloat64));
    memory = {7, 8, 9};
  }
  EXPECT_TRUE(is_given_back);
  EXPECT_EQ(values(graph(ones({3}, kFloat64))), (std::vector<double>{2, 3, 4}));
}

}  // namespace
}  // namespace weft
