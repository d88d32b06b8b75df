// The command line as a user meets it: what it prints, writes and ends with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "io/zip.h"
#include "support/tensors.h"
#include "weft/export/export_program.h"
#include "weft/io/numpy.h"
#include "weft/io/pt2.h"
#include "weft/io/safetensors.h"
#include "weft/nn/layers.h"
#include "weft/ops/conversions.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

using ::testing::AllOf;
using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kArchives = WEFT_SOURCE_DIR "/tests/compat/archives/";
const std::string kTied = kArchives + "tied_weights.pt2", kScalars = kArchives + "scalar_inputs.pt2";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs the program in a folder of the test's own.
class WeftTool : public ::testing::Test {
 protected:
  struct Ended {
    int code = -1;
    std::string out, err;
  };

  void SetUp() override {
    folder_ = ::testing::TempDir() + "weft_tool_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + name; }

  Ended weft(const std::string& arguments) const {
    const std::string command =
        std::string(WEFT_TOOL) + " " + arguments + " >" + at("out") + " 2>" + at("err");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(at("out")), content_of(at("err"))};
  }

  // The example of an archive as a file of inputs.
  std::string inputs_of(const std::string& model) const {
    const ExportedProgram program = load_pt2(model);
    NamedArrays tensors;
    for (const Value& leaf : tree_leaves(*program.example_inputs()))
      if (leaf.is_tensor()) tensors.emplace_back(std::to_string(tensors.size()), leaf.to_tensor());
    save_npz(tensors, at("inputs.npz"));
    return at("inputs.npz");
  }

  std::string folder_;
};

TEST_F(WeftTool, SaysWhatItIs) {
  EXPECT_THAT(weft("--version").out, StartsWith("weft 0."));
  const Ended help = weft("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"run", "grad", "train", "show", "check", "bench", "diff", "convert"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Ended own = weft(std::string(command) + " --help");
    EXPECT_EQ(own.code, 0) << command;
    EXPECT_THAT(own.out, AllOf(HasSubstr("Example"), HasSubstr("MODEL"))) << command;
  }
}

TEST_F(WeftTool, RunsAndCompares) {
  const Ended printed = weft("run " + kTied);
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, StartsWith("0: f32["));
  ASSERT_EQ(weft("run " + kTied + " --inputs " + inputs_of(kTied) + " --output " + at("y.npz")).code, 0);
  const ExportedProgram program = load_pt2(kTied);
  const Value arguments = *program.example_inputs();
  const Value expected = program.module().call(arguments.elements()[0].elements());
  expect_equal(load_npz(at("y.npz")).at(0).second, tree_leaves(expected).at(0).to_tensor().detach());
  const Ended same = weft("run " + kTied + " --expect " + at("y.npz"));
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.out, HasSubstr("equal to"));
  save_npz({{"0", load_npz(at("y.npz")).at(0).second + 0.5}}, at("z.npz"));
  const Ended other = weft("run " + kTied + " --expect " + at("z.npz"));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("1 of 1 differ"), HasSubstr("was expected: an error of 0.5")));
  EXPECT_EQ(weft("run " + kTied + " --atol 1 --expect " + at("z.npz")).code, 0);
  const Json json = Json::parse(weft("run --json " + kTied).out);
  EXPECT_EQ(json.at("outputs").at(0).at("dtype").as_string(), "float32");
}

TEST_F(WeftTool, SaysWhatIsWrongWithTheCommandLine) {
  auto expect_usage = [&](const std::string& arguments, const char* words) {
    const Ended ended = weft(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << "\n" << ended.err;
    EXPECT_THAT(ended.out + ended.err, HasSubstr(words)) << arguments;
  };
  expect_usage("", "A subcommand is required");
  expect_usage("run", "MODEL is required");
  expect_usage("run " + at("none.pt2"), "there is no file");
  expect_usage("run --no-such-flag " + kTied, "--no-such-flag");
  expect_usage("run " + kTied + " --inputs x.csv", "their names end in .safetensors, .npz or .npy");
  expect_usage("run " + kTied + " --engine compiled", "no compiler yet");
  expect_usage("show " + kTied + " --format pdf", "there is no format 'pdf'");
  expect_usage("train " + kTied + " --data x.npz --optimizer rmsprop --lr 1", "there are sgd and adamw");
  expect_usage("bench " + kTied + " --dim batch", "is no NAME=N");
  expect_usage("bench " + kTied + " --dim batch=3", "no size of an input is called that");
  expect_usage("run " + kTied + " --plugin " + at("libnone.so"), "cannot be loaded");
}

TEST_F(WeftTool, SaysWhatIsWrongWithFiles) {
  const std::string whole = content_of(kTied);
  std::ofstream(at("cut.pt2"), std::ios::binary) << whole.substr(0, whole.size() / 2);
  std::ofstream(at("text.pt2")) << "not an archive";
  for (const char* name : {"cut.pt2", "text.pt2"}) {
    const Ended ended = weft("run " + at(name));
    EXPECT_EQ(ended.code, 3) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(name));
  }
  EXPECT_EQ(weft("run " + kTied + " --inputs " + at("none.npz")).code, 3);
  save_npz({{"7", ones({2})}}, at("keys.npz"));
  const Ended keys = weft("run " + kTied + " --inputs " + at("keys.npz"));
  EXPECT_EQ(keys.code, 3);
  EXPECT_THAT(keys.err, HasSubstr("the keys are \"0\" or"));
}

TEST_F(WeftTool, ChecksChecksums) {
  EXPECT_EQ(weft("check " + kTied + " --deep").code, 0);
  std::string bytes = content_of(kTied);
  const zip::Archive archive = zip::Archive::open(kTied);
  for (const zip::Entry& entry : archive.entries())
    if (entry.name.find("data/weights/weight") != std::string::npos && entry.size > 0)
      bytes[entry.offset] ^= 1;
  std::ofstream(at("flipped.pt2"), std::ios::binary) << bytes;
  EXPECT_EQ(weft("check " + at("flipped.pt2")).code, 0);
  const Ended deep = weft("check " + at("flipped.pt2") + " --deep");
  EXPECT_EQ(deep.code, 3);
  EXPECT_THAT(deep.err, HasSubstr("data/weights/"));
  EXPECT_THAT(weft("check " + kTied).out, HasSubstr("all supported"));
}

TEST_F(WeftTool, DifferentiatesAndTrains) {
  const std::string inputs = inputs_of(kTied);
  const Ended grad = weft("grad " + kTied + " --output " + at("g.safetensors"));
  ASSERT_EQ(grad.code, 0) << grad.err;
  EXPECT_THAT(grad.out, StartsWith("loss: "));
  EXPECT_EQ(weft("grad " + kTied + " --expect " + at("g.safetensors")).code, 0);
  EXPECT_EQ(load_safetensors(at("g.safetensors")).size(), 3u);
  const double first = std::stod(grad.out.substr(6));

  const Ended train =
      weft("train " + kTied + " --data " + inputs + " --optimizer sgd --lr 0.01 --steps 3 --log " +
           at("log.json") + " -o " + at("trained.pt2"));
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("3 steps in"));
  const Json log = Json::parse(content_of(at("log.json")));
  const Json& losses = log.at("sgd").at("losses");
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_NEAR(losses.at(0).as_double(), first, 1e-5 * first);
  for (int i = 1; i < 4; ++i) EXPECT_LT(losses.at(i).as_double(), losses.at(i - 1).as_double());
  // The first step is the gradient's.
  const ExportedProgram before = load_pt2(kTied);
  const Ended one = weft("train " + kTied + " --data " + inputs + " --optimizer sgd --lr 0.01 --steps 1 -o " +
                         at("one.pt2"));
  ASSERT_EQ(one.code, 0) << one.err;
  const Tensor gradient = load_safetensors(at("g.safetensors")).at("block.weight");
  EXPECT_TRUE(testing::close(load_pt2(at("one.pt2")).tensor("block.weight").detach(),
                             before.tensor("block.weight").detach() - gradient * 0.01, 1e-6, 1e-6));
  // Tied tensors are still one.
  const ExportedProgram after = load_pt2(at("one.pt2"));
  EXPECT_TRUE(after.tensor("again.weight").storage() == after.tensor("block.weight").storage());

  const Ended diff = weft("diff " + kTied + " " + at("trained.pt2"));
  EXPECT_EQ(diff.code, 1);
  EXPECT_THAT(diff.out, HasSubstr("the first node that differs is embedding"));
  EXPECT_EQ(weft("diff " + kTied + " " + kTied).code, 0);
  // The same program in other operators, whose nodes have the names of others.
  ASSERT_EQ(weft("convert --decompose " + kTied + " -o " + at("core.pt2")).code, 0);
  const Ended dialects = weft("diff " + kTied + " " + at("core.pt2"));
  EXPECT_EQ(dialects.code, 0) << dialects.out;
  EXPECT_EQ(weft("diff " + at("core.pt2") + " " + at("trained.pt2")).code, 1);
}

// Counts its calls, writes to its input, has sizes that come from data, and a parameter that is not used.
struct Writer : nn::Module {
  Tensor weight = parameter("weight", full({3}, 2.0)), unused = parameter("unused", ones({2}));
  Tensor calls = buffer("calls", zeros({}));
  Tensor forward(const Tensor& x, const Tensor& state) {
    calls.add_(1);
    state.mul_(0.5);
    return masked_select(x * weight + state, x > 0);
  }
  WEFT_ARGS(x, state)
};

TEST_F(WeftTool, TrainingLeavesItsDataAsItIsAndCountsItsStepsOnly) {
  const Tensor x = arange(-2, 7).reshape({3, 3}).to(kFloat32), state = full({3}, 4.0);
  save_pt2(export_for_training(Writer(), {x, state}), at("writer.pt2"));
  save_npz({{"0", x}, {"1", state}}, at("data.npz"));
  const Ended train =
      weft("train " + at("writer.pt2") + " --data " + at("data.npz") +
           " --optimizer sgd --lr 0.001 --steps 3 --log " + at("log.json") + " -o " + at("trained.pt2"));
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_EQ(load_pt2(at("trained.pt2")).tensor("calls").item().to_double(), 3);
  // By hand: of 1 to 6, which are positive, mean((x * w + 2)^2) and its gradient by w, whose column x is in.
  const Json losses = Json::parse(content_of(at("log.json"))).at("sgd").at("losses");
  EXPECT_NEAR(losses.at(0).as_double(), (16 + 36 + 64 + 100 + 144 + 196) / 6.0, 1e-4);
  for (int i = 1; i < 4; ++i) EXPECT_LT(losses.at(i).as_double(), losses.at(i - 1).as_double());

  // What the loss does not depend on has no gradient; zeros are as good.
  ASSERT_EQ(
      weft("grad " + at("writer.pt2") + " --inputs " + at("data.npz") + " --output " + at("g.npz")).code, 0);
  NamedArrays gradients = load_npz(at("g.npz"));
  EXPECT_EQ(gradients.size(), 3u);
  gradients.emplace_back("unused", zeros({2}));
  save_npz(gradients, at("g.npz"));
  EXPECT_EQ(
      weft("grad " + at("writer.pt2") + " --inputs " + at("data.npz") + " --expect " + at("g.npz")).code, 0);
  gradients.back().second = ones({2});
  save_npz(gradients, at("g.npz"));
  EXPECT_EQ(
      weft("grad " + at("writer.pt2") + " --inputs " + at("data.npz") + " --expect " + at("g.npz")).code, 1);
}

TEST_F(WeftTool, ShowsAProgram) {
  EXPECT_THAT(weft("show " + kTied).out,
              AllOf(StartsWith("def forward(self, p_"), HasSubstr("torch.ops.aten.embedding.default")));
  EXPECT_THAT(weft("show --format graph " + kTied).out, HasSubstr("call_function"));
  EXPECT_THAT(weft("show --format readable " + kTied).out, HasSubstr("ExportedProgram"));
  EXPECT_THAT(weft("show --format svg " + kTied).out, HasSubstr("<svg"));
  const Json json = Json::parse(weft("show --json " + kTied).out);
  EXPECT_GT(json.at("nodes").size(), 5u);
  EXPECT_THAT(json.at("nodes").at(0).at("type").as_string(), StartsWith("f32["));
  EXPECT_EQ(json.at("inputs").at(0).at("kind").as_string(), "PARAMETER");
  ASSERT_EQ(weft("show --format html -o " + at("page.html") + " " + kTied).code, 0);
  const std::string page = content_of(at("page.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("aten.embedding.default"),
                          HasSubstr("id=\"search\"")));
  EXPECT_EQ(page.find("src="), std::string::npos) << "the page needs nothing else";
}

TEST_F(WeftTool, ConvertsAndMeasures) {
  ASSERT_EQ(weft("convert " + kTied + " -o " + at("copy.pt2")).code, 0);
  ASSERT_EQ(weft("run " + kTied + " --output " + at("y.npz")).code, 0);
  EXPECT_EQ(weft("run " + at("copy.pt2") + " --rtol 0 --atol 0 --expect " + at("y.npz")).code, 0);
  ASSERT_EQ(weft("convert " + kTied + " -o " + at("w.safetensors")).code, 0);
  EXPECT_EQ(weft("run " + kTied + " --weights " + at("w.safetensors") + " --expect " + at("y.npz")).code, 0);
  EXPECT_EQ(weft("convert " + kTied + " -o " + at("model.onnx")).code, 2);
  const Ended bench = weft("bench --json --seconds 0.05 " + kTied);
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_GE(Json::parse(bench.out).at("runs").as_int(), 3);
}

TEST_F(WeftTool, TakesNumbersOfTheExportAndRefusesOthers) {
  EXPECT_EQ(weft("run " + kScalars).code, 0);
  const ExportedProgram program = load_pt2(kTied);
  const Tensor example = tree_leaves(*program.example_inputs()).at(0).to_tensor();
  save_npz({{"0", cat({example, example}, -1)}}, at("large.npz"));
  const Ended ended = weft("run " + kTied + " --inputs " + at("large.npz"));
  EXPECT_EQ(ended.code, 5) << ended.out << ended.err;
}

struct Classifier : nn::Module {
  nn::Linear hidden = child("hidden", nn::Linear(4, 8)), out = child("out", nn::Linear(8, 3));
  Tensor forward(const Tensor& x) { return out(relu(hidden(x))); }
  WEFT_ARGS(x)
};

TEST_F(WeftTool, TakesWhatWasExportedFromCpp) {
  const Classifier net;
  const Dim batch("batch", {.min = 2, .max = 64});
  const ExportOptions any_batch{.dynamic_shapes = {{"x", {{0, batch}}}}};
  save_pt2(export_for_training(net, {randn({3, 4})}, any_batch), at("net.pt2"));
  const Tensor x = randn({12, 4});
  save_npz({{"0", x}}, at("x.npz"));
  save_npz({{"0", Classifier(net)(x).detach()}}, at("y.npz"));
  const std::string inputs = " --inputs " + at("x.npz");
  const Ended run = weft("run " + at("net.pt2") + inputs + " --expect " + at("y.npz"));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(weft("grad " + at("net.pt2") + inputs).code, 0);
  EXPECT_THAT(weft("show " + at("net.pt2")).out,
              HasSubstr("torch.ops.aten.linear.default(x, p_hidden_weight"));
  save_npz({{"x", x}, {"label", (x.sum(1) > 0).to(kInt64)}}, at("data.npz"));
  const Ended train =
      weft("train " + at("net.pt2") + " --data " + at("data.npz") +
           " --target label --loss cross_entropy --optimizer adamw --lr 1e-2 --steps 30 --log " +
           at("log.json") + " -o " + at("better.pt2"));
  ASSERT_EQ(train.code, 0) << train.err;
  const Json log = Json::parse(content_of(at("log.json"))).at("adamw").at("losses");
  EXPECT_LT(log.at(log.size() - 1).as_double(), log.at(0).as_double());
  // What was trained is another program of the same inputs.
  EXPECT_EQ(weft("run " + at("better.pt2") + inputs).code, 0);
  EXPECT_EQ(weft("run " + at("better.pt2") + inputs + " --expect " + at("y.npz")).code, 1);
}

TEST_F(WeftTool, TakesAShortLastBatchThatTheModelTakes) {
  const Tensor x = randn({6, 4});
  save_npz({{"0", x}}, at("x.npz"));
  for (const int64_t least : {1, 3}) {
    const Dim batch("batch", {.min = least, .max = 64});
    save_pt2(export_program(Classifier(), {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}}), at("net.pt2"));
    const std::string train = "train " + at("net.pt2") + " --data " + at("x.npz") +
                              " --optimizer adamw --lr 0.001 --log " + at("log.json");
    // 6 = 5 + 1 = 4 + 2, where 4 is another size of the input, too.
    for (const char* rows : {"5", "4"}) {
      const Ended ended = weft(train + " --epochs 2 --batch " + rows);
      ASSERT_EQ(ended.code, 0) << ended.err;
      EXPECT_EQ(Json::parse(content_of(at("log.json"))).at("adamw").at("losses").size(),
                least == 1 ? 5u : 3u);
    }
  }
}

// Chooses rows of a table, which has more of them than there are examples.
struct Lookup : nn::Module {
  Tensor weight = parameter("weight", ones({2, 3}));
  Tensor forward(const Tensor& rows, const Tensor& table) {
    return matmul(index_select(table, 0, rows), weight);
  }
  WEFT_ARGS(rows, table)
};

TEST_F(WeftTool, RowsAreThoseOfTheTarget) {
  const Dim batch("batch", {.min = 1, .max = 64});
  const Tensor rows = arange(0, 4), table = randn({9, 2});
  save_pt2(
      export_program(Lookup(), {rows.slice(0, 0, 2), table}, {.dynamic_shapes = {{"rows", {{0, batch}}}}}),
      at("net.pt2"));
  save_npz({{"rows", rows}, {"table", table}, {"label", full({4}, 1, kInt64)}}, at("data.npz"));
  const std::string train = "train " + at("net.pt2") + " --data " + at("data.npz") +
                            " --target label --loss cross_entropy --optimizer sgd --lr 0.1 --batch 2";
  const Ended ended = weft(train + " --log " + at("log.json"));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Json::parse(content_of(at("log.json"))).at("sgd").at("losses").size(), 3u);
  save_npz({{"rows", rows}, {"table", table}, {"label", full({3}, 1, kInt64)}}, at("data.npz"));
  const Ended refused = weft(train);
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("the target 'label' has 3 rows, and no input has as many"));
}

struct Dropping : nn::Module {
  Tensor weight = parameter("weight", ones({64}));
  Tensor forward(const Tensor& x) { return dropout(x * weight, 0.5, true); }
  WEFT_ARGS(x)
};

TEST_F(WeftTool, GradientsHaveTheRandomNumbersOfTheirSeed) {
  save_pt2(export_for_training(Dropping(), {ones({64})}), at("net.pt2"));
  save_npz({{"0", ones({64})}}, at("x.npz"));
  const std::string inputs = at("net.pt2") + " --inputs " + at("x.npz") + " --seed ";
  ASSERT_EQ(weft("run " + inputs + "3 --output " + at("y.npz")).code, 0);
  ASSERT_EQ(weft("grad " + inputs + "3 --output " + at("g.npz")).code, 0);
  // Of mean(y * y), y being 0 or 2 * weight.
  expect_equal(load_npz(at("g.npz")).at(0).second, load_npz(at("y.npz")).at(0).second / 16);
  EXPECT_EQ(weft("grad " + inputs + "4 --expect " + at("g.npz")).code, 1);
}

TEST_F(WeftTool, RefusesWhatNoRunCanChangeBeforeIt) {
  EXPECT_EQ(weft("run " + kTied + " --threads -1").code, 2);
  EXPECT_EQ(weft("run " + kTied + " --model other").code, 2);
  EXPECT_THAT(weft("run " + kTied + " --output " + at("none/y.npz")).err, HasSubstr("there is no folder"));
  const std::string train = "train " + kTied + " --data " + inputs_of(kTied) + " --optimizer sgd ";
  EXPECT_EQ(weft(train + "--lr -1").code, 2);
  EXPECT_EQ(weft(train + "--lr 0.1 -o " + at("none/y.pt2")).code, 2);
}

// What bash offers after these words, the last of which is being typed.
std::string completions(const std::string& script, const std::string& words) {
  const std::string result = ::testing::TempDir() + "weft_tool_completions";
  const std::string command = "bash -c 'source " + script + "; COMP_WORDS=(" + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weft; echo ${COMPREPLY[*]}' > " +
                              result + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return content_of(result);
}

TEST_F(WeftTool, CompletesCommandsOptionsAndTheirValues) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Ended script = weft(std::string("completion ") + shell);
    ASSERT_EQ(script.code, 0) << script.err;
    for (const char* word : {"convert", "decompose", "mean_square"})
      EXPECT_THAT(script.out, HasSubstr(word)) << shell;
  }
  std::ofstream(at("weft.bash")) << weft("completion bash").out;
  const std::string script = at("weft.bash");
  EXPECT_EQ(completions(script, "weft co"), "convert completion\n");
  EXPECT_EQ(completions(script, "weft train model.pt2 --optimizer \"\""), "sgd adamw\n");
  EXPECT_EQ(completions(script, "weft completion z"), "zsh\n");
  EXPECT_EQ(completions(script, "weft train --ep"), "--epochs\n");
  EXPECT_EQ(completions(script, "weft train --lr \"\""), "\n") << "a number: no file is offered";
  EXPECT_EQ(completions(script, "weft run " + at("weft.b")), script + "\n");
  EXPECT_EQ(weft("completion tcsh").code, 2);
  EXPECT_THAT(weft("completion tcsh").err, HasSubstr("bash, zsh and fish"));
}

TEST_F(WeftTool, HasAManualPage) {
  const Ended page = weft("man");
  ASSERT_EQ(page.code, 0);
  EXPECT_THAT(page.out,
              AllOf(StartsWith(".TH WEFT 1"), HasSubstr(".SS weft run MODEL"), HasSubstr("\\-\\-expect")));
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "no groff to read the page with";
  std::ofstream(at("weft.1")) << page.out;
  const std::string command =
      "groff -ww -man -Tutf8 -P-cbou " + at("weft.1") + " > " + at("text") + " 2> " + at("warnings");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(content_of(at("warnings")), "");
  EXPECT_THAT(content_of(at("text")), HasSubstr("weft train model.pt2 --data"));
}

}  // namespace
}  // namespace weft
