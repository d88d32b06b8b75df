// Errors name the user's line, and the module that was running.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/func.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

struct Block : nn::Module {
  nn::Conv2d conv1 = child("conv1", nn::Conv2d(3, 4, 1));
  Tensor forward(const Tensor& x) { return conv1(x); }
  WEFT_ARGS(x)
};

struct Tower : nn::Module {
  nn::ModuleList<Block> layers = child("layers", nn::ModuleList<Block>());
  nn::Sequential head = child("head", nn::Sequential(nn::Flatten(), nn::Linear(4, 2)));
  Tower() { layers.push_back(Block()); }
  Tensor forward(const Tensor& x) {
    if (x.dim() == 1) return matmul(x, x.view({1, -1}));  // wrong in the root itself
    return head(layers[0](x));
  }
  WEFT_ARGS(x)
};
constexpr unsigned kLineInTheRoot = __LINE__ - 5;

std::string words_of(FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error came";
}

std::string here(unsigned line) { return "error_places_test.cc:" + std::to_string(line) + " in "; }

TEST(ErrorPlaces, NameTheLineOfTheUser) {
  const std::string words = words_of([] { matmul(ones({2, 3}), ones({2, 3})); });
  EXPECT_THAT(words, HasSubstr("\n  at "));
  EXPECT_THAT(words, HasSubstr(here(__LINE__ - 2)));
  EXPECT_THAT(words, Not(HasSubstr(" (nn::"))) << "no module is running";
}

TEST(ErrorPlaces, NameTheModuleByItsPath) {
  Tower net;
  std::string words = words_of([&] { net(ones({1, 5, 1, 1})); });
  EXPECT_THAT(words, HasSubstr("\n  in layers.0.conv1 (nn::Conv2d) of Tower\n  at "));
  words = words_of([&] { net(ones({1, 3, 2, 2})); });
  EXPECT_THAT(words, HasSubstr("\n  in head.1 (nn::Linear) of Tower\n"));
  words = words_of([&] { net.head(ones({1, 3})); });
  EXPECT_THAT(words, HasSubstr("\n  in 1 (nn::Linear) of nn::Sequential\n"));
}

TEST(ErrorPlaces, NameTheRootWhereItIsItsOwnCode) {
  Tower net;
  const std::string words = words_of([&] { net(ones({3})); });
  EXPECT_THAT(words, HasSubstr("\n  in Tower\n  at "));
  EXPECT_THAT(words, HasSubstr(here(kLineInTheRoot)));
}

struct Outer : nn::Module {
  std::shared_ptr<Tower> tower = std::make_shared<Tower>();  // not registered
  Tensor forward(const Tensor& x) { return (*tower)(x); }
  WEFT_ARGS(x)
};

TEST(ErrorPlaces, AreThoseOfTheInnerModelWhereOneCallsAnother) {
  Outer outer;
  EXPECT_THAT(words_of([&] { outer(ones({1, 5, 1, 1})); }),
              HasSubstr("\n  in layers.0.conv1 (nn::Conv2d) of Tower\n"));
}

TEST(ErrorPlaces, AreFoundBelowTransformsAndCaptures) {
  Tower net;
  auto loss = [&](const Tensor& x) { return net(x).sum(); };
  const std::string path = "\n  in layers.0.conv1 (nn::Conv2d) of Tower\n";
  EXPECT_THAT(words_of([&] { func::vmap(func::grad(loss))(ones({2, 1, 5, 1, 1})); }), HasSubstr(path));
  EXPECT_THAT(words_of([&] { make_graph(loss)(ones({1, 5, 1, 1})); }), HasSubstr(path));
  Tensor x = ones({2}).set_requires_grad();
  EXPECT_THAT(words_of([&] { x.backward(ones({3})); }), HasSubstr(here(__LINE__)));
}

TEST(ErrorPlaces, AreFoundBelowMoreCallsThanAStackTraceKeeps) {
  // Each level passes the call on to the next one.
  func::Transformed f(func::as_fn([](const Tensor& t) { return matmul(t, t.view({1, -1})).sum(); }));
  const std::string place = here(__LINE__ - 1);
  for (int i = 0; i < 12; ++i) f = func::grad([f](const Tensor& t) { return f(t).sum(); });
  EXPECT_THAT(words_of([&] { f(ones({3})); }), HasSubstr(place));
}

TEST(ErrorPlaces, AreLookedUpWhenSomebodyAsks) {
  try {
    Tower()(ones({1, 5, 1, 1}));
    FAIL() << "no error came";
  } catch (Error& error) {
    EXPECT_THAT(error.text(), Not(HasSubstr("\n  in ")));
    EXPECT_THAT(error.user_line(), HasSubstr("error_places_test.cc:"));
    const std::string first = error.what();
    EXPECT_EQ(first, error.what());
    const Error copy = error;
    EXPECT_EQ(first, copy.what());
    error.add_while("asked again");
    EXPECT_THAT(error.what(), HasSubstr("\n  while asked again\n  in layers.0.conv1"));
    EXPECT_EQ(first, copy.what());
  }
}

}  // namespace
}  // namespace weft
