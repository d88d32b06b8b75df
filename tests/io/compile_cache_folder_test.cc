#include "weft/io/compile_cache_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/aot/aot_function.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/base/warning.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_equal;

const Tensor& constant() {
  static const Tensor made = arange(6, kFloat32).reshape({2, 3});
  return made;
}

// A folder for one test.
class CompileCacheFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    constant();  // not made by a capture
    folder_ = ::testing::TempDir() + "weft_compile_cache_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) all.push_back(entry.path());
    return all;
  }

  std::string folder_;
};

// Writes, views, a constant, random numbers.
const ValueFunction program = [](Args args) {
  const Tensor &x = args[0].tensor_ref(), &w = args[1].tensor_ref();
  x.mul_(2);
  Tensor y = (x * w + constant()).sin();
  return Value::tuple({y, x.view(-1), dropout(y, 0.5, true), y.sum()});
};
GraphModule captured(bool requires_grad = true) {
  return GraphMaker(program, {.mode = CaptureMode::kFake, .pre_dispatch = true, .allow_real_inputs = true})
      .capture({ones({2, 3}), ones({2, 3}).set_requires_grad(requires_grad)});
}

struct Result {
  ValueList outputs;
  Tensor x, gradient;
};
Result run(const AotFunction& f) {
  manual_seed(7);
  const Tensor x = arange(6, kFloat32).reshape({2, 3}), w = full({2, 3}, 0.25).set_requires_grad();
  Result result{f.call({x, w}).elements(), x, {}};
  (result.outputs[0].to_tensor().sum() + result.outputs[2].to_tensor().sum()).backward();
  result.gradient = w.grad();
  return result;
}

void expect_same(const Result& got, const Result& wanted) {
  for (size_t i = 0; i < wanted.outputs.size(); ++i)
    expect_equal(got.outputs[i].to_tensor().detach(), wanted.outputs[i].to_tensor().detach());
  EXPECT_TRUE(got.outputs[1].to_tensor().storage() == got.x.storage());
  expect_equal(got.x, wanted.x);
  expect_equal(got.gradient, wanted.gradient);
}

AotOptions keeping(std::string& code, std::shared_ptr<aot::CompileCache> cache) {
  return {.forward_compiler =
              [&code](GraphModule& graph, const ValueList& examples) {
                code = graph.code();
                return aot::nop(graph, examples);
              },
          .backward_compiler = aot::nop,
          .partitioner = aot::min_cut_partitioner(),
          .cache = std::move(cache),
          .strict_cache = true};
}

TEST_F(CompileCacheFolder, KeepsGraphsForOtherProcesses) {
  std::string first_code, second_code;
  auto first = compile_cache_in(folder_), second = compile_cache_in(folder_);
  const Result wanted = run(aot_function(program));
  expect_same(run(aot_function(captured(), keeping(first_code, first))), wanted);
  EXPECT_EQ(first->counters().misses, 1u);
  ASSERT_EQ(files().size(), 1u);
  // Nothing is left of the first one but its file.
  expect_same(run(aot_function(captured(), keeping(second_code, second))), wanted);
  EXPECT_EQ(second->counters().hits, 1u);
  EXPECT_EQ(second->counters().misses, 0u);
  EXPECT_EQ(first_code, second_code);
}

TEST_F(CompileCacheFolder, TellsProgramsApart) {
  std::string code;
  auto cache = compile_cache_in(folder_);
  run(aot_function(captured(), keeping(code, cache)));
  GraphModule other = captured();
  const auto constants = [&] {
    for (const Node& node : other.graph())
      if (node.kind() == NodeKind::kGetAttr) return other.find(node.target().to_string()).to_tensor();
    return Tensor();
  }();
  ASSERT_TRUE(constants.defined());
  for (Node& node : other.graph())
    if (node.kind() == NodeKind::kGetAttr) {
      other.set_attribute(node.target().to_string(), constants + 1);
      break;
    }
  const Result result = run(aot_function(other, keeping(code, cache)));
  EXPECT_EQ(cache->counters().hits, 0u);
  EXPECT_EQ(cache->counters().misses, 2u);
  expect_equal(result.outputs[0].to_tensor().detach(),
               (arange(6, kFloat32).reshape({2, 3}) * 2 * 0.25 + constants + 1).sin());
}

TEST_F(CompileCacheFolder, ADamagedFileIsAMissAndAWarning) {
  std::string code;
  const Result wanted = run(aot_function(captured(), keeping(code, compile_cache_in(folder_))));
  const std::filesystem::path path = files().at(0);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  for (const std::streamoff at : {size / 4, size / 3, size / 2, size - 30}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x5a));
    file.close();
    auto cache = compile_cache_in(folder_);
    WarningCapture warnings;
    expect_same(run(aot_function(captured(), keeping(code, cache))), wanted);
    EXPECT_EQ(cache->counters().hits, 0u) << at;
    ASSERT_EQ(warnings.warnings().size(), 1u) << at;
    EXPECT_THAT(warnings.warnings()[0].message,
                ::testing::HasSubstr("is damaged, and the program is traced again"));
    // It was written again.
    auto mended = compile_cache_in(folder_);
    run(aot_function(captured(), keeping(code, mended)));
    EXPECT_EQ(mended->counters().hits, 1u) << at;
  }
  std::filesystem::resize_file(path, 100);
  WarningCapture warnings;
  expect_same(run(aot_function(captured(), keeping(code, compile_cache_in(folder_)))), wanted);
}

TEST_F(CompileCacheFolder, SaysWhatItCannotKeep) {
  auto cache = compile_cache_in(folder_);
  std::string code;
  AotOptions dynamic = keeping(code, cache);
  dynamic.dynamic = true;
  EXPECT_ERROR(run(aot_function(captured(), dynamic)), "keeps programs of sizes that are numbers");
  EXPECT_ERROR(run(aot_function(program, keeping(code, cache))),
               "this program is C++ code; capture it first");
  AotOptions lenient = keeping(code, cache);
  lenient.strict_cache = false;
  run(aot_function(program, lenient));
  EXPECT_EQ(cache->counters().bypasses, 3u);
  EXPECT_TRUE(files().empty());
  EXPECT_ERROR(compile_cache_in("/dev/null/cache"), "the folder '/dev/null/cache' cannot be made");
}

}  // namespace
}  // namespace weft
