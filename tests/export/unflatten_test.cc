#include "weft/export/unflatten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/export/export_program.h"
#include "weft/io/pt2.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;

Tensor first_result(const Value& result) { return tree_leaves(result)[0].to_tensor(); }

struct Counts : nn::Module {
  Tensor calls = buffer("calls", zeros({1}));
  nn::Linear fc = child("fc", nn::Linear(3, 3));
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    calls.add_(1);
    const Tensor y = fc(x);
    return {y + calls, y * 2};
  }
  WEFT_ARGS(x)
};
struct AroundCounts : nn::Module {
  Counts part = child("part", Counts());
  Tensor forward(const Tensor& x) {
    const auto [a, b] = part(x);
    return a * b;
  }
  WEFT_ARGS(x)
};

TEST(Unflatten, PartsGiveSeveralValuesAndBuffersAreWritten) {
  const AroundCounts eager;
  const Tensor x = randn({2, 3});
  for (const bool is_training : {false, true}) {
    const AroundCounts module = nn::deep_copy(eager), exported = nn::deep_copy(eager);
    const GraphModule net =
        unflatten(is_training ? export_for_training(exported, {x}) : export_program(exported, {x}));
    for (int i = 1; i <= 2; ++i) {
      EXPECT_TRUE(close(first_result(net.call({x})), module(x), 1e-6, 1e-6));
      EXPECT_EQ(net.find("part.calls").to_tensor().item().to_double(), i);
    }
    const GraphModule part = *graph_module_in(net.find("part"));
    EXPECT_EQ(part.call({x}).elements().size(), is_training ? 2u : 3u) << part.code();
    EXPECT_TRUE(graph_module_in(net.find("part.fc")).has_value());
  }
}

TEST(Unflatten, ArgumentsAreChecked) {
  const GraphModule net = unflatten(export_program(AroundCounts(), {randn({2, 3})}));
  EXPECT_THROW(net.call({randn({4, 3})}), AssertionError);
}

// What it does depends on what it is told.
struct TwoWays : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(3, 3));
  Tensor forward(const Tensor& x, bool squares) {
    const Tensor y = fc(x);
    return squares ? y * y : y + 1;
  }
  WEFT_ARGS(x, squares)
};
struct BothWays : nn::Module {
  TwoWays block = child("block", TwoWays());
  Tensor forward(const Tensor& x) {
    const Tensor a = block(x, true);
    const Tensor b = block(a, false);
    return block(b, true);
  }
  WEFT_ARGS(x)
};

TEST(Unflatten, CallsOfOneModuleThatDifferAreGraphsOfTheirOwn) {
  const BothWays module;
  const Tensor x = randn({2, 3});
  const GraphModule net = unflatten(export_program(module, {x}));
  EXPECT_TRUE(close(first_result(net.call({x})), module(x), 1e-6, 1e-6));
  EXPECT_TRUE(net.try_find("block@1").has_value());
  EXPECT_FALSE(net.try_find("block@2").has_value());
  // The weights are the same tensors.
  EXPECT_EQ(net.parameters().size(), 2u);
}

struct CallsTwice : nn::Module {
  nn::Linear leaf = child("leaf", nn::Linear(3, 3));
  Tensor forward(const Tensor& x) {
    const Tensor y = leaf(x);
    return leaf(y);
  }
  WEFT_ARGS(x)
};

TEST(Unflatten, FilesTellCallsOfOneModuleApart) {
  const CallsTwice module;
  const Tensor x = randn({2, 3});
  const std::string path = ::testing::TempDir() + "weft_unflatten_test.pt2";
  save_pt2(export_program(module, {x}), path);
  const GraphModule net = unflatten(load_pt2(path));
  std::remove(path.c_str());
  size_t calls = 0;
  for (const Node& node : net.graph()) calls += node.kind() == NodeKind::kCallModule;
  EXPECT_EQ(calls, 2u) << net.graph();
  EXPECT_TRUE(close(first_result(net.call({x})), module(x), 1e-6, 1e-6));
}

// A module below one part, called by another.
struct Borrows : nn::Module {
  nn::Linear fc;
  explicit Borrows(const nn::Linear& other) : fc(other) {}
  Tensor forward(const Tensor& x) { return fc(x) + 1; }
  WEFT_ARGS(x)
};
struct Lends : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(3, 3));
  Borrows borrower = child("borrower", Borrows(fc));
  Tensor forward(const Tensor& x) {
    const Tensor y = fc(x);
    return borrower(y);
  }
  WEFT_ARGS(x)
};

TEST(Unflatten, AModuleMayBeCalledFromAnotherPartOfTheTree) {
  const Lends module;
  const Tensor x = randn({2, 3});
  const GraphModule net = unflatten(export_program(module, {x}));
  EXPECT_TRUE(close(first_result(net.call({x})), module(x), 1e-6, 1e-6));
  EXPECT_EQ(net.parameters().size(), 2u);
}

struct Drops : nn::Module {
  nn::Dropout first = child("first", nn::Dropout(0.5)), second = child("second", nn::Dropout(0.5));
  Tensor forward(const Tensor& x) {
    const Tensor y = first(x);
    return second(y) + rand({4});
  }
  WEFT_ARGS(x)
};

TEST(Unflatten, RandomCallsDrawInTheirOrder) {
  const Tensor x = ones({3, 4});
  const ExportedProgram program = export_program(Drops(), {x});
  const GraphModule flat = program.module(), net = unflatten(program);
  manual_seed(3);
  const Tensor wanted = first_result(flat.call({x}));
  manual_seed(3);
  EXPECT_TRUE(close(first_result(net.call({x})), wanted));
}

TEST(Unflatten, IsAModuleLikeAnyOther) {
  const AroundCounts module;
  const Tensor x = randn({2, 3});
  const GraphModule net = unflatten(export_program(module, {x}));
  EXPECT_EQ(net.state_dict().size(), 3u);
  const GraphModule copy = net.deep_copy();
  const Tensor wanted = first_result(net.call({x}));
  EXPECT_TRUE(close(first_result(copy.call({x})), wanted, 1e-6, 1e-6));
  Tensor loss = first_result(net.call({x})).sum();
  loss.backward();
  EXPECT_TRUE(net.find("part.fc.weight").to_tensor().grad().defined());
  EXPECT_FALSE(copy.find("part.fc.weight").to_tensor().grad().defined());
}

}  // namespace
}  // namespace weft
