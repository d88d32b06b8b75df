#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/dispatch/layers.h"

namespace weft {
namespace {

using testing::values;
using testing::vec;

TEST(InferenceModeTest, ResultsKeepNoHistory) {
  Tensor x = vec({1, 2}).set_requires_grad(), y, view;
  {
    InferenceMode mode;
    y = x * 2;
    view = y.select(0, 0);
    y.add_(1);
    EXPECT_FALSE(is_grad_enabled());
  }
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_TRUE(y.is_inference());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(view.is_view());
  EXPECT_TRUE(view.is_inference());
  EXPECT_EQ(values(y), (std::vector<double>{3, 5}));
  EXPECT_FALSE((y + 1).is_inference());
}

TEST(InferenceModeTest, OutsideOfItInferenceTensorsAreReadOnly) {
  Tensor y = [] {
    InferenceMode mode;
    return zeros({2}, kFloat64);
  }();
  EXPECT_ERROR(y.add_(1), "Inplace update to inference tensor outside InferenceMode is not allowed");
  EXPECT_ERROR(y.select(0, 0).zero_(),
               "Inplace update to inference tensor outside InferenceMode is not allowed");
  EXPECT_ERROR(add_out(y, vec({1, 2}), vec({1, 2})), "Inplace update to inference tensor");
  EXPECT_EQ(values(y), (std::vector<double>{0, 0}));
  EXPECT_ERROR(y.set_requires_grad(),
               "Setting requires_grad=true on inference tensor outside InferenceMode is not allowed");
  Tensor copy = y.clone();
  copy.add_(1);
  EXPECT_EQ(values(copy), (std::vector<double>{1, 1}));
  InferenceMode again;
  y.add_(5);
  EXPECT_EQ(values(y), (std::vector<double>{5, 5}));
}

TEST(InferenceModeTest, InferenceTensorsAreNotSavedForBackward) {
  Tensor w = vec({1, 2}).set_requires_grad(), y;
  {
    InferenceMode mode;
    y = vec({3, 4});
  }
  EXPECT_ERROR(w * y, "Inference tensors cannot be saved for backward");
  (w + y).sum().backward();  // saves nothing
  EXPECT_EQ(values(w.grad()), (std::vector<double>{1, 1}));
}

TEST(InferenceModeTest, NormalTensorsStayNormalInside) {
  Tensor x = vec({1, 2}), leaf = vec({1, 2}).set_requires_grad(), base = leaf * 1, view;
  {
    InferenceMode mode;
    x.add_(1);
    view = base.select(0, 0);
  }
  EXPECT_EQ(x.version(), 1u);
  EXPECT_FALSE(view.is_inference());
  EXPECT_TRUE(view.is_view());
  EXPECT_ERROR(view.mul_(leaf.select(0, 0)), "A view was created in inference mode");
}

TEST(InferenceModeTest, CanBeSwitchedOffInside) {
  InferenceMode mode;
  {
    InferenceMode off(false);
    Tensor x = vec({1}).set_requires_grad();
    EXPECT_FALSE(x.is_inference());
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE(vec({1}).clone().is_inference());
}

}  // namespace
}  // namespace weft
