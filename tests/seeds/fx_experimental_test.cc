// The rows of TestFXExperimental about assertions, example metadata and changing graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/graph/manipulation.h"
#include "weft/graph/parse.h"
#include "weft/io/graph_file.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::close;

struct Add : nn::Module {
  Var forward(Var a, Var b) { return a + b; }
  WEFT_ARGS(a, b)
};

TEST(TestFXExperimental, test_replace_target_nodes_with) {
  GraphModule traced = symbolic_trace(Add());
  Tensor a = randn({1}), b = randn({1});
  EXPECT_TRUE(close(traced(a, b), a + b, 0, 0));
  std::vector<std::string> names;
  for (const Node& node : traced.graph()) names.push_back(node.name());
  size_t count = replace_target_nodes_with(traced, NodeKind::kCallFunction, python_function("operator.add"),
                                           NodeKind::kCallFunction, python_function("operator.mul"));
  EXPECT_EQ(count, 1u);
  std::vector<std::string> after;
  for (const Node& node : traced.graph()) after.push_back(node.name());
  EXPECT_EQ(after, names);
  EXPECT_TRUE(close(traced(a, b), a * b, 0, 0));
}

// assert a == b; return a + b
struct Asserting : nn::Module {
  explicit Asserting(std::string text) : message(std::move(text)) {}
  Var forward(Var a, Var b) {
    assert_that(a == b, message);
    return a + b;
  }
  WEFT_ARGS(a, b)
  std::string message;
};

struct AssertingWithoutMessage : nn::Module {
  Var forward(Var a, Var b) {
    assert_that(a == b);
    return a + b;
  }
  WEFT_ARGS(a, b)
};

template <typename M>
GraphModule check_asserting(M module, const std::string& message) {
  GraphModule traced = symbolic_trace(module);
  traced.graph().lint();
  const Node* assertion = nullptr;
  for (const Node& node : traced.graph())
    if (node.kind() == NodeKind::kCallFunction && node.target().to_string() == "torch._assert")
      assertion = &node;
  EXPECT_TRUE(assertion != nullptr);
  EXPECT_EQ(node_in(assertion->args()[0])->target().to_string(), "operator.eq");
  EXPECT_EQ(assertion->args()[1].to_string_view(), message);
  EXPECT_EQ(traced.call({3, 3}).to_int(), 6);
  EXPECT_EQ(module(Var(3), Var(3)).template as<int64_t>(), 6);
  const std::string words = message.empty() ? "an assertion of the program failed" : message;
  EXPECT_ERROR_TYPE(AssertionError, traced.call({3, 5}), words);
  EXPECT_ERROR_TYPE(AssertionError, module(Var(3), Var(5)), words);
  return traced;
}

TEST(TestFXExperimental, test_call_to_assert_no_msg) { check_asserting(AssertingWithoutMessage(), ""); }
TEST(TestFXExperimental, test_call_to_assert_with_msg) {
  check_asserting(Asserting("test message"), "test message");
}
TEST(TestFXExperimental, test_call_to_assert_with_empty_msg) { check_asserting(Asserting(""), ""); }

TEST(TestFXExperimental, test_call_to_assert_with_multiline_message) {
  std::string message = "\nAn error message with\nterrible spacing\n                ";
  GraphModule traced = check_asserting(Asserting(message), message);
  // The spacing survives the code and its reader.
  GraphModule read(parse_code(traced.code()));
  EXPECT_ERROR_TYPE(AssertionError, read.call({3, 5}), message);
  EXPECT_EQ(read.call({3, 3}).to_int(), 6);
}

TEST(TestFXExperimental, test_traceable_function_with_nonstandard_name) {
  auto foo = [](const Tensor& x) { return relu(x); };
  GraphModule traced = symbolic_trace(foo, {.arg_names = "x"});
  std::vector<std::string> names;
  for (const Node& node : traced.graph()) names.push_back(node.name());
  EXPECT_THAT(names, ::testing::ElementsAre("x", "relu", "output"));
  EXPECT_TRUE(traced.state_dict().empty());
}

struct MetaTraced : nn::Module {
  nn::Embedding emb = child("emb", nn::Embedding(42, 16));
  nn::LayerNorm layernorm = child("layernorm", nn::LayerNorm({16}));
  Tensor forward(const Tensor& x) {
    Tensor e = emb(x);
    e = e + arange(e.size(-1), kFloat32, std::nullopt, e.device());
    Tensor lol = layernorm(e);
    return lol.size(0) < 30 ? relu(lol) : sigmoid(lol);
  }
  WEFT_ARGS(x)
};

bool calls(const GraphModule& module, std::string_view target) {
  for (const Node& node : module.graph())
    if (node.target().to_string() == target) return true;
  return false;
}

TEST(TestFXExperimental, test_meta_tracer) {
  MetaTraced module;
  for (int64_t batch : {15, 35}) {
    Tensor x = randint(0, 42, {batch}, kInt64);
    Tensor meta = to(x, std::nullopt, std::nullopt, Device("meta"));
    GraphModule traced = symbolic_trace(module, {.meta_args = Dict{{"x", meta}}});
    EXPECT_EQ(calls(traced, "torch.ops.aten.relu.default"), batch == 15);
    EXPECT_EQ(calls(traced, "torch.ops.aten.sigmoid.default"), batch == 35);
    EXPECT_TRUE(close(traced(x), module(x), 1e-6, 1e-6));
    std::string path = ::testing::TempDir() + "weft_meta_" + std::to_string(::getpid());
    save_graph_module(traced, path);
    GraphModule loaded = load_graph_module(path);
    std::filesystem::remove(path);
    EXPECT_TRUE(close(loaded(x), traced(x), 0, 0));
  }
}

}  // namespace
}  // namespace weft
