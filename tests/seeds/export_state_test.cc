// The rows of TestExport about modules and their state: buffers that change, names, programs that are
// exported again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

struct Counting : nn::Module {
  Tensor buf;
  explicit Counting(const Tensor& start) : buf(buffer("buf", start)) {}
  Tensor forward(const Tensor& x) {
    buf.add_(1);
    return x.sum() + buf.sum();
  }
  WEFT_ARGS(x)
};

// Whether the module's buffers are single numbers with these values.
void expect_buffers(const GraphModule& module, const std::vector<std::pair<std::string, double>>& wanted) {
  const nn::NamedTensors buffers = module.named_buffers();
  ASSERT_EQ(buffers.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(buffers[i].first, wanted[i].first);
    EXPECT_EQ(buffers[i].second.item().to_double(), wanted[i].second);
  }
}

TEST(TestExport, test_to_module_with_mutated_buffer) {
  for_each_variant([](const Exporter& exports) {
    const GraphModule stateful = exports(Counting(zeros({1})), {ones({5, 5})}).module();
    const Counting eager(zeros({1}));
    EXPECT_TRUE(close(only_tensor(stateful.call({ones({5, 5})})), eager(ones({5, 5}))));
    expect_buffers(stateful, {{"buf", 1}});
    EXPECT_FALSE(stateful.graph().eliminate_dead_code());
    EXPECT_TRUE(close(only_tensor(stateful.call({ones({5, 5})})), eager(ones({5, 5}))));
    expect_buffers(stateful, {{"buf", 2}});
  });
}

template <bool updates_later>
struct CountingTwice : nn::Module {
  Tensor buf = buffer("buf", zeros({1}));
  Counting bar = child("bar", Counting(ones({1})));
  Tensor forward(const Tensor& x) {
    buf.add_(1);
    if (!updates_later) bar.buf.add_(2);
    const Tensor b = bar(x);
    if (updates_later) bar.buf.add_(2);
    return b.sum() + buf.sum();
  }
  WEFT_ARGS(x)
};

template <bool updates_later>
void expect_counts_twice() {
  for_each_variant([](const Exporter& exports) {
    const GraphModule stateful = exports(CountingTwice<updates_later>(), {ones({5, 5})}).module();
    const CountingTwice<updates_later> eager;
    EXPECT_TRUE(close(only_tensor(stateful.call({ones({5, 5})})), eager(ones({5, 5}))));
    expect_buffers(stateful, {{"buf", 1}, {"bar.buf", 4}});
    EXPECT_FALSE(stateful.graph().eliminate_dead_code());
    EXPECT_TRUE(close(only_tensor(stateful.call({ones({5, 5})})), eager(ones({5, 5}))));
    expect_buffers(stateful, {{"buf", 2}, {"bar.buf", 7}});
  });
}

TEST(TestExport, test_to_module_with_mutated_buffer_multiple) { expect_counts_twice<false>(); }
TEST(TestExport, test_to_module_with_mutated_buffer_multiple_update_sub_later) {
  expect_counts_twice<true>();
}

struct FixedLinear : nn::Module {
  Tensor weight = randn({20, 98}), bias = randn({20});
  FixedLinear() {
    attribute("weight", weight);
    attribute("bias", bias);
  }
  Tensor forward(const Tensor& x) { return linear(x, weight, bias); }
  WEFT_ARGS(x)
};
struct OnPairs : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(16, 33, 3));
  FixedLinear own_linear = child("linear", FixedLinear());
  std::tuple<Tensor, Tensor> forward(const std::tuple<Tensor, Tensor>& x) {
    const Tensor a = own_linear(conv(std::get<0>(x))), b = own_linear(conv(std::get<1>(x)));
    return {a.cos() + b.sin(), a.sin() + b.cos()};
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_module) {
  for_each_variant([](const Exporter& exports) {
    auto pair = [] { return Value::tuple({randn({20, 16, 50, 100}), randn({20, 16, 50, 100})}); };
    const ValueList example = {pair()};
    const ExportedProgram program = exports(OnPairs(), example);
    const ExportedProgram again = exports(program.module(), example);
    const ValueList other = {pair()};
    const ValueList first = tree_leaves(program.module().call(other)),
                    second = tree_leaves(again.module().call(other));
    ASSERT_EQ(first.size(), 2u);
    ASSERT_EQ(second.size(), 2u);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(close(first[i].to_tensor(), second[i].to_tensor(), 1e-5, 1e-8));
  });
}

struct AddsConstant : nn::Module {
  Tensor a = from_data<float>({1}, {});
  AddsConstant() { attribute("a", a); }
  Tensor forward(const Tensor& x) { return x + a; }
  WEFT_ARGS(x)
};
struct HookedSequence : nn::Sequential {
  Tensor b = from_data<int64_t>({2}, {});
  HookedSequence() : Sequential(AddsConstant()) {
    attribute("b", b);
    eval();
    register_forward_hook([](const std::vector<Tensor>&, Tensor& output) { output = 2 * output; });
  }
};
struct AroundHooked : nn::Module {
  HookedSequence seq = child("seq", HookedSequence());
  Tensor forward(const Tensor& x) { return seq(x) + seq.b; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_issue_113041) {
  for_each_variant([](const Exporter& exports) {
    const AroundHooked module;
    const Tensor x = randn({2, 8});
    const Tensor got = only_tensor(exports(module, {x}).module().call({x}));
    EXPECT_TRUE(close(got, module(x)));
    EXPECT_TRUE(close(got, 2 * (x + 1) + 2));
  });
}

struct AddsParameter : nn::Module {
  Tensor p = parameter("p", randn({3, 3}));
  Tensor forward(const Tensor& x, const Tensor& y) { return p + x + y; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_preserve_requires_grad_placeholders) {
  for_each_variant([](const Exporter& exports) {
    Tensor y = randn({3, 3});
    y.set_requires_grad();
    const ExportedProgram program = exports(AddsParameter(), {randn({3, 3}), y});
    std::vector<bool> wants;
    for (const Node* placeholder : program.graph().placeholders())
      wants.push_back(placeholder->meta_or_null()->value.to_tensor().requires_grad());
    EXPECT_THAT(wants, ::testing::ElementsAre(true, false, true));
  });
}

struct WritesSlice : nn::Module {
  Tensor forward(const Tensor& x) {
    put_at(x, {Slice(), Slice(std::nullopt, 2), Slice()},
           at(x, {Slice(), Slice(std::nullopt, 2), Slice()}) + 1);
    return x;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_input_mutation_bug) {
  for_each_variant([](const Exporter& exports) {
    const GraphModule module = exports(WritesSlice(), {ones({4, 4, 4})}).module();
    int64_t i = 0;
    for (Node& node : module.graph()) {
      ++i;
      if (node.kind() == NodeKind::kPlaceholder) node.rename("arg0_" + std::to_string(i));
    }
    const ExportedProgram again = exports(module, {ones({4, 4, 4})});
    const Tensor x = randn({4, 4, 4}), of_program = x.clone(), of_module = x.clone();
    EXPECT_TRUE(close(only_tensor(again.module().call({of_program})), WritesSlice()(of_module)));
    EXPECT_TRUE(close(of_program, of_module));
  });
}

struct NestedParameter : nn::Module {
  Tensor param = parameter("param", randn({3}));
  Tensor forward(const Tensor& x) { return x + param; }
  WEFT_ARGS(x)
};
struct AroundParameter : nn::Module {
  NestedParameter nested = child("nested", NestedParameter());
  Tensor forward(const Tensor& x) { return x + nested(x); }
  WEFT_ARGS(x)
};

TEST(TestOneOffModelExportResult, test_nested_retrace) {
  for_each_variant([](const Exporter& exports) {
    AroundParameter module;
    module.to(kMeta);
    const Tensor x = ones({3}, std::nullopt, std::nullopt, kMeta);
    module(x);
    const ExportedProgram program = exports(module, {x}), again = exports(program.module(), {x});
    ASSERT_EQ(program.graph().size(), again.graph().size());
    size_t with_modules = 0;
    for (auto a = program.graph().begin(), b = again.graph().begin(); a != program.graph().end(); ++a, ++b) {
      const ModuleStack mine = a->meta_or_null() ? a->meta_or_null()->modules : ModuleStack(),
                        theirs = b->meta_or_null() ? b->meta_or_null()->modules : ModuleStack();
      ASSERT_EQ(mine.size(), theirs.size()) << a->name();
      for (size_t i = 0; i < mine.size(); ++i) {
        EXPECT_EQ(mine[i].path, theirs[i].path);
        EXPECT_EQ(mine[i].class_name, theirs[i].class_name);
      }
      with_modules += mine.size() == 2;
    }
    EXPECT_EQ(with_modules, 1u);
  });
}

}  // namespace
}  // namespace weft
