// What a call of functions does is what they do: dead code elimination looks into branches. And graphs whose
// results are structs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/func/control_flow.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A function that calls cond, drops its result, and gives its argument's sine. `branch` is one of the two.
template <typename F>
std::string code_with_unused_cond(F branch) {
  auto f = [=](const Tensor& x) {
    func::cond(x.sum() > 0, branch, [](const Tensor& t) { return t.cos(); }, x);
    return x.sin();
  };
  return make_graph(f)(testing::ramp({3})).code();
}

TEST(Purity, ACondOfPureBranchesThatNobodyUsesIsDeadCode) {
  EXPECT_THAT(code_with_unused_cond([](const Tensor& t) { return t.exp(); }), Not(HasSubstr("cond")));
}

TEST(Purity, ACondWhoseBranchDrawsStays) {
  EXPECT_THAT(code_with_unused_cond([](const Tensor& t) { return rand_like(t); }), HasSubstr("cond"));
}

TEST(Purity, ACondWhoseBranchWritesStays) {
  EXPECT_THAT(code_with_unused_cond([](const Tensor& t) { return t.clone().add_(1); }), HasSubstr("cond"));
}

TEST(Purity, BranchesOfBranchesCount) {
  auto nested = [](const Tensor& t) {
    return func::cond(
        t.sum() > 1, [](const Tensor& u) { return rand_like(u); }, [](const Tensor& u) { return u.cos(); },
        t);
  };
  EXPECT_THAT(code_with_unused_cond(nested), HasSubstr("cond"));
  auto pure = [](const Tensor& t) {
    return func::cond(
        t.sum() > 1, [](const Tensor& u) { return u.exp(); }, [](const Tensor& u) { return u.cos(); }, t);
  };
  EXPECT_THAT(code_with_unused_cond(pure), Not(HasSubstr("cond")));
}

TEST(Purity, RandomBranchesGoWhereRandomCallsMay) {
  auto f = [](const Tensor& x) {
    func::cond(
        x.sum() > 0, [](const Tensor& t) { return rand_like(t); }, [](const Tensor& t) { return t.cos(); },
        x);
    return x.sin();
  };
  GraphModule g = make_graph(f)(testing::ramp({3}));
  EXPECT_FALSE(g.graph().eliminate_dead_code());
  EXPECT_TRUE(g.graph().eliminate_dead_code(false));
  EXPECT_THAT(g.code(), Not(HasSubstr("cond")));
}

TEST(Purity, ABranchThatCannotBeFoundMayDoAnything) {
  GraphModule g = make_graph([](const Tensor& x) {
    return func::cond(
        x.sum() > 0, [](const Tensor& t) { return t.exp(); }, [](const Tensor& t) { return t.cos(); }, x);
  })(testing::ramp({3}));
  Graph nobodys = g.graph().copy();
  nobodys.output_node()->set_args({1});
  nobodys.eliminate_dead_code();
  EXPECT_THAT(nobodys.code(), HasSubstr("cond"));
}

// --- structs ---------------------------------------------------------------------------------------------

struct Pair {
  Tensor a, b;
  WEFT_STRUCT(Pair, a, b)
};

TEST(StructResults, KeepTheirComputation) {
  auto f = [](const Tensor& x) { return Pair{x.sin(), x + 1}; };
  GraphModule g = make_graph(f)(testing::ramp({3}));
  EXPECT_THAT(g.code(), HasSubstr("sin"));
  EXPECT_THAT(g.code(), HasSubstr("add"));
  const Tensor other = testing::ramp({5}, -2, 2);
  const Pair result = from_value<Pair>(g.call({other}));
  testing::expect_equal(result.a, other.sin());
  testing::expect_equal(result.b, other + 1);
  g.graph().lint();
}

TEST(StructResults, TheirNodesAreUsed) {
  auto f = [](const Tensor& x) { return Pair{x.sin(), x}; };
  GraphModule g = make_graph(f)(testing::ramp({3}));
  EXPECT_EQ(g.graph().output_node()->inputs().size(), 2u);
  EXPECT_FALSE(g.graph().eliminate_dead_code());
}

}  // namespace
}  // namespace weft
