// The row of TestFXExperimental about modules as C++ classes: what is written is read back, and built and run
// by a compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/tensors.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/io/folder.h"
#include "weft/io/safetensors.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"

namespace weft {
namespace {

using testing::close;

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

// Builds the class Foo of the folder with a main that runs it on a tensor, against the library as it is in
// the build folder; what the class gives.
Tensor result_of_built_class(const std::filesystem::path& folder, const Tensor& x) {
  const std::filesystem::path build = folder / "build";
  std::ofstream(folder / "main.cc") << R"(#include "Foo.h"
int main(int, char** argv) {
  const std::string folder = argv[1];
  Foo foo(folder);
  weft::SafeTensors result;
  result.add("y", foo(weft::load_safetensors(folder + "/x.safetensors").at("x")).detach());
  weft::save_safetensors(result, folder + "/y.safetensors");
  return foo.attr3.dtype() == weft::kInt32 && foo.W.requires_grad() && !foo.attr2.requires_grad() ? 0 : 1;
}
)";
  SafeTensors given;
  given.add("x", x);
  save_safetensors(given, (folder / "x.safetensors").string());
  const std::string configure = fmt::format(
      "'{}' -S '{}/tests/consumer' -B '{}' -G Ninja -D 'PROGRAM={}/main.cc;{}/Foo.cc' -D weft_DIR='{}' "
      "-D CMAKE_CXX_COMPILER='{}' -D CMAKE_CXX_COMPILER_LAUNCHER='{}' "
      "-D CMAKE_CXX_FLAGS='{} -O0 -Wall -Wextra -Werror' >'{}/log' 2>&1",
      WEFT_CMAKE, WEFT_SOURCE_DIR, build.string(), folder.string(), folder.string(), WEFT_BINARY_DIR,
      WEFT_COMPILER, WEFT_LAUNCHER, WEFT_FLAGS, folder.string());
  const std::string make =
      fmt::format("'{}' --build '{}' >>'{}/log' 2>&1", WEFT_CMAKE, build.string(), folder.string());
  EXPECT_EQ(std::system(configure.c_str()), 0) << text_of(folder / "log");
  EXPECT_EQ(std::system(make.c_str()), 0) << text_of(folder / "log");
  EXPECT_EQ(std::system(fmt::format("'{}/consumer' '{}'", build.string(), folder.string()).c_str()), 0);
  return load_safetensors((folder / "y.safetensors").string()).at("y");
}

bool has_compiler() { return std::filesystem::exists(WEFT_CMAKE) && std::filesystem::exists(WEFT_COMPILER); }

TEST(TestFXExperimental, test_to_folder) {
  ToFolder original;
  GraphModule traced = symbolic_trace(original);
  // The same folder each time: what was compiled there is found again.
  const std::filesystem::path folder = WEFT_BINARY_DIR "/to_folder_row";
  std::filesystem::remove_all(folder);
  to_folder(traced, folder.string(), "Foo");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().filename());
  EXPECT_THAT(files, ::testing::UnorderedElementsAre("Foo.h", "Foo.cc", "Foo.safetensors"));
  const std::string source = text_of(folder / "Foo.cc"), header = text_of(folder / "Foo.h");
  GraphModule loaded = load_folder(folder.string(), "Foo");
  SafeTensors weights = load_safetensors((folder / "Foo.safetensors").string());

  // Writing ran nothing: the counter of batches is where it was.
  EXPECT_EQ(original.seq.state()->children[0].state->buffers[2].tensor.item().to_int(), 0);
  EXPECT_TRUE(traced.is_training());
  EXPECT_TRUE(loaded.is_training());
  Tensor x = randn({2, 2});
  std::optional<Tensor> of_class;
  if (has_compiler()) of_class = result_of_built_class(folder, x);
  std::filesystem::remove_all(folder);
  Tensor result = loaded(x);
  EXPECT_TRUE(!of_class || close(*of_class, result, 0, 0));
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
