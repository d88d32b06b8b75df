#include "weft/core/tensor.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"

namespace weft {
namespace {

using testing::values;

constexpr Device kSim0{DeviceType::kSim, 0}, kSim1{DeviceType::kSim, 1};

Tensor on(Device device, SymInts sizes = {2, 3}) { return ones(sizes, kFloat32, std::nullopt, device); }

TEST(Tensor, AHandleIsSmallAndShares) {
  EXPECT_EQ(sizeof(Tensor), 8u);
  const Tensor x = zeros({2}), same = x;
  same.add_(1);
  EXPECT_EQ(values(x), (std::vector<double>{1, 1}));
  EXPECT_TRUE(x.is_same(same));
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, ViewsShareMemoryAndVersion) {
  const Tensor x = zeros({3, 4});
  const std::vector<Tensor> views = {
      x.view({12}),        x.select(0, 1), x.slice(1, 1, 3),         x.t(), x.unsqueeze(0), x.detach(),
      x.expand({2, 3, 4}), x.diagonal(),   x.as_strided({2}, {5}, 1)};
  for (const Tensor& view : views) EXPECT_EQ(view.storage(), x.storage());
  const uint32_t version = x.version();
  views[1].add_(1);
  for (const Tensor& view : views) EXPECT_EQ(view.version(), version + 1);
  EXPECT_EQ(values(x), (std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}));
}

TEST(Tensor, CopiesDoNotShare) {
  const Tensor x = zeros({2, 3});
  for (const Tensor& copy : {x.clone(), x + 0, x.t().contiguous(), x.to(kFloat64)}) {
    EXPECT_NE(copy.storage(), x.storage());
    EXPECT_FALSE(copy.is_view());
  }
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_TRUE(x.to(kFloat32).is_same(x));
}

TEST(Tensor, VersionsCountWritesOnly) {
  const Tensor x = ones({2}), y = ones({2});
  const uint32_t version = x.version();
  x + y;
  x.clone();
  EXPECT_EQ(x.version(), version);
  x.add_(y);
  x.zero_();
  EXPECT_EQ(x.version(), version + 2);
  EXPECT_EQ(y.version(), 0u);
}

TEST(Tensor, AWriteThatFailsIsNoWrite) {
  const Tensor x = ones({2, 3}, kInt64);
  const uint32_t version = x.version();
  EXPECT_ERROR(x.add_(ones({3, 3}, kInt64)), "The size of tensor a (2) must match the size of tensor b (3)");
  EXPECT_ERROR(x.add_(1.5), "can't be cast to the desired output type int64");
  EXPECT_ERROR(x.copy_(ones({4})), "must match");
  EXPECT_EQ(x.version(), version);
  EXPECT_EQ(values(x), std::vector<double>(6, 1));
}

TEST(Tensor, GeometryIsReadFromEitherEnd) {
  const Tensor x = zeros({2, 3, 5});
  EXPECT_EQ(x.size(-1), 5);
  EXPECT_EQ(x.size(0), 2);
  EXPECT_EQ(x.stride(0), 15);
  EXPECT_EQ(x.stride(-2), 5);
  EXPECT_EQ(x.plain_numel(), 30);
  EXPECT_EQ(x.slice(1, 1, 3).storage_offset(), 5);
}

TEST(Tensor, FormatsSayHowMemoryLies) {
  const Tensor x = testing::ramp({2, 3, 4, 5}), last = x.contiguous(MemoryFormat::kChannelsLast);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_FALSE(x.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_EQ(describe_sizes(last.strides()).str(), "[60, 1, 15, 3]");
  EXPECT_EQ(values(last), values(x));
  EXPECT_TRUE((last + 1).is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FALSE(x.permute({0, 2, 3, 1}).is_contiguous());
  EXPECT_TRUE(last.permute({0, 2, 3, 1}).is_contiguous());
  EXPECT_ERROR(ones({2, 3}).contiguous(MemoryFormat::kChannelsLast),
               "required rank 4 tensor to use channels_last format");
}

TEST(Tensor, SizeOneDimsMayHaveAnyStride) {
  EXPECT_TRUE(zeros({1, 3, 1, 2}).is_contiguous());
  EXPECT_TRUE(zeros({4}).as_strided({1, 4}, {77, 1}).is_contiguous());
  EXPECT_TRUE(zeros({2, 1, 3, 3}).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST(Tensor, DataIsCheckedForTypeAndMemory) {
  EXPECT_ERROR(ones({2, 3}).data<double>(), "data: expected a tensor of float64 but it is f32[2, 3]");
  EXPECT_ERROR(on(kMeta).data<float>(), "data: f32[2, 3] on meta has no memory; only its shape is known");
}

// --- devices ---------------------------------------------------------------------------------------------

TEST(Devices, MixingNamesOperatorArgumentsAndDevices) {
  EXPECT_USER_ERROR(
      on(kCpu) + on(kSim0),
      "aten::add.Tensor: expected all tensors to be on the same device, but found at least two devices, "
      "cpu and sim:0 (arguments 'self' and 'other'); move one with to(Device)");
  EXPECT_USER_ERROR(mul(on(kSim0), on(kSim1)),
                    "at least two devices, sim:0 and sim:1 (arguments 'self' and 'other')");
  EXPECT_USER_ERROR(on(kCpu) + on(kMeta), "cpu and meta (arguments 'self' and 'other')");
  EXPECT_USER_ERROR(mm(on(kSim0), on(kMeta)), "aten::mm: expected all tensors to be on the same device");
  EXPECT_USER_ERROR(cat({on(kCpu), on(kSim0)}), "cpu and sim:0 (arguments 'tensors' and 'tensors')");
  EXPECT_USER_ERROR(where(on(kCpu) > 0, on(kCpu), on(kSim0)), "cpu and sim:0 (arguments 'self' and 'other')");
}

TEST(Devices, MixingInPlaceChangesNothing) {
  const Tensor x = on(kCpu);
  EXPECT_ERROR(x.add_(on(kSim0)), "aten::add_.Tensor: expected all tensors to be on the same device");
  EXPECT_EQ(x.version(), 0u);
  EXPECT_EQ(values(x), std::vector<double>(6, 1));
}

TEST(Devices, AZeroDimCpuTensorMayJoinAnyDevice) {
  const Tensor y = on(kSim0) * full({}, 3);
  EXPECT_EQ(y.device(), kSim0);
  EXPECT_EQ(values(y.to(kCpu, kFloat32)), std::vector<double>(6, 3));
}

TEST(Devices, CopiesCrossThem) {
  const Tensor x = testing::ramp({2, 3}).to(kFloat32), there = x.to(kSim0, kFloat32),
               back = there.to(kCpu, kFloat32);
  EXPECT_EQ(there.device(), kSim0);
  EXPECT_NE(there.storage(), x.storage());
  EXPECT_EQ(values(back), values(x));
  const Tensor y = zeros({2, 3});
  y.copy_(there);
  EXPECT_EQ(values(y), values(x));
  EXPECT_EQ(values((there + there).to(kCpu, kFloat32)), values(x + x));
}

TEST(Devices, MetaHasShapesAndNoData) {
  const Tensor x = on(kMeta);
  EXPECT_EQ(describe(x + x).str(), "f32[2, 3]");
  EXPECT_TRUE((x.t()).device().is_meta());
  EXPECT_EQ(x.view({6}).storage(), x.storage());
  EXPECT_ERROR(x.to(kCpu, kFloat32), "Cannot copy out of meta tensor; no data!");
  EXPECT_ERROR(ones({2, 3}).copy_(x), "Cannot copy out of meta tensor; no data!");
  const Tensor huge = empty({int64_t{1} << 40}, kFloat32, std::nullopt, kMeta);
  EXPECT_EQ((huge + 1).plain_numel(), int64_t{1} << 40);
}

TEST(Devices, HaveNames) {
  EXPECT_EQ(Device("sim:3").to_string(), "sim:3");
  EXPECT_EQ(Device("sim"), Device("sim:0"));
  for (const char* bad : {"gpu", "", "cuda:0", "sim:", "sim:-1", "sim:128", "sim:1x", "cpu:1"})
    EXPECT_USER_ERROR(Device(bad), "is not a device; expected cpu, meta, sim, or sim:N with N from 0 to 127");
}

// --- nothing in it ---------------------------------------------------------------------------------------

TEST(EmptyTensor, GoesThroughEverything) {
  const Tensor x = empty({0, 3});
  EXPECT_EQ(x.plain_numel(), 0);
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(describe(x + 1).str(), "f32[0, 3]");
  EXPECT_EQ(describe(x.t()).str(), "f32[3, 0]");
  EXPECT_EQ(describe(x.view({3, 0, 5})).str(), "f32[3, 0, 5]");
  EXPECT_EQ(describe(cat({x, x})).str(), "f32[0, 3]");
  EXPECT_EQ(describe(mm(x, ones({3, 2}))).str(), "f32[0, 2]");
  EXPECT_EQ(values(mm(ones({2, 0}), empty({0, 2}))), std::vector<double>(4, 0));
  EXPECT_EQ(values(sum(x)), std::vector<double>{0});
  EXPECT_EQ(values(sum(x, {0})), std::vector<double>(3, 0));
  EXPECT_EQ(describe(softmax(x, 1)).str(), "f32[0, 3]");
  EXPECT_EQ(describe(x.clone()).str(), "f32[0, 3]");
  EXPECT_EQ(describe(index_select(x, 1, zeros({2}, kInt64))).str(), "f32[0, 2]");
  EXPECT_EQ(describe(conv2d(empty({0, 3, 8, 8}), ones({4, 3, 3, 3}))).str(), "f32[0, 4, 6, 6]");
  EXPECT_EQ(describe(empty({int64_t{1} << 62, 0})).str(), "f32[4611686018427387904, 0]");
  x.add_(1);
}

}  // namespace
}  // namespace weft
