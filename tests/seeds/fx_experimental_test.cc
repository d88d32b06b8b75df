// The rows of TestFXExperimental about assertions, example metadata and changing graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/graph/manipulation.h"
#include "weft/graph/parse.h"
#include "weft/io/folder.h"
#include "weft/io/graph_file.h"
#include "weft/io/safetensors.h"
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

// --- to_folder -------------------------------------------------------------------------------------------

struct ToFolder : nn::Module {
  Tensor W = parameter("W", randn({2}));
  nn::Sequential seq = child("seq", nn::Sequential(nn::BatchNorm1d(2, {.eps = 2})));
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  Tensor attr = randn({2});  // neither a parameter nor a buffer
  Tensor attr2 = buffer("attr2", randn({2}));
  Tensor attr3 = buffer("attr3", ones({2}, kInt32));
  Tensor forward(const Tensor& x) { return linear(seq(W + attr + attr2 + attr3 + x)); }
  WEFT_ARGS(x)
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TestFXExperimental, test_to_folder) {
  ToFolder original;
  GraphModule traced = symbolic_trace(original);
  const std::filesystem::path folder = ::testing::TempDir() + "weft_to_folder_" + std::to_string(::getpid());
  to_folder(traced, folder.string(), "Foo");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().filename());
  EXPECT_THAT(files, ::testing::UnorderedElementsAre("Foo.h", "Foo.cc", "Foo.safetensors"));
  const std::string source = text_of(folder / "Foo.cc"), header = text_of(folder / "Foo.h");
  GraphModule loaded = load_folder(folder.string(), "Foo");
  SafeTensors weights = load_safetensors((folder / "Foo.safetensors").string());
  std::filesystem::remove_all(folder);

  // Writing ran nothing: the counter of batches is where it was.
  EXPECT_EQ(original.seq.state()->children[0].state->buffers[2].tensor.item().to_int(), 0);
  EXPECT_TRUE(traced.is_training());
  EXPECT_TRUE(loaded.is_training());
  Tensor x = randn({2, 2});
  Tensor result = loaded(x);
  EXPECT_TRUE(close(result, traced(x), 0, 0));
  EXPECT_TRUE(close(result, original(x), 0, 0));

  // Types of buffers survive, and the plain attribute is a buffer.
  EXPECT_EQ(weights.at("attr3").dtype(), kInt32);
  EXPECT_EQ(loaded.find("attr3").to_tensor().dtype(), kInt32);
  EXPECT_TRUE(close(loaded.find("_tensor_constant0").to_tensor(), original.attr, 0, 0));
  std::vector<std::string> buffers, parameters;
  for (const auto& [name, tensor] : loaded.named_buffers()) buffers.push_back(name);
  for (const auto& [name, tensor] : loaded.named_parameters()) parameters.push_back(name);
  EXPECT_THAT(buffers,
              ::testing::IsSupersetOf({"_tensor_constant0", "attr2", "attr3", "seq.0.running_mean"}));
  EXPECT_THAT(parameters, ::testing::UnorderedElementsAre("W", "seq.0.weight", "seq.0.bias", "linear.weight",
                                                          "linear.bias"));

  EXPECT_THAT(header, ::testing::HasSubstr("class Foo : public weft::nn::Module {"));
  EXPECT_THAT(header, ::testing::HasSubstr("  weft::Tensor forward(const weft::Tensor& x);\n"));
  EXPECT_THAT(source, ::testing::HasSubstr("  attr3 = buffer(\"attr3\", weights.at(\"attr3\"));\n"));
  EXPECT_THAT(source, ::testing::HasSubstr(R"(
Tensor Foo::forward(const Tensor& x) {
  Tensor w = this->W;
  Tensor _tensor_constant0 = this->_tensor_constant0;
  Tensor add = weft::add(w, _tensor_constant0);
  Tensor attr2 = this->attr2;
  Tensor add_1 = weft::add(add, attr2);
  Tensor attr3 = this->attr3;
  Tensor add_2 = weft::add(add_1, attr3);
  Tensor add_3 = weft::add(add_2, x);
  Tensor seq_0_num_batches_tracked = this->seq_0_num_batches_tracked;
  weft::add_(seq_0_num_batches_tracked, Scalar(1));
  Tensor seq_0_weight = this->seq_0_weight;
  Tensor seq_0_bias = this->seq_0_bias;
  Tensor seq_0_running_mean = this->seq_0_running_mean;
  Tensor seq_0_running_var = this->seq_0_running_var;
  Tensor batch_norm = weft::batch_norm(add_3, seq_0_weight, seq_0_bias, seq_0_running_mean, seq_0_running_var, true, 0.1, 2.0, true);
  Tensor linear_weight = this->linear_weight;
  Tensor linear_bias = this->linear_bias;
  Tensor linear = weft::linear(batch_norm, linear_weight, linear_bias);
  return linear;
}
)"));
}

}  // namespace
}  // namespace weft
