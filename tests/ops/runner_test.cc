// The runner of recorded calls finds what is planted: a test that cannot fail tests nothing.
#include "samples/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "weft/base/error.h"

namespace weft::recorded {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Writes a sample file with one row and runs that row. The tensors there are: "t" = 1, 2, 3, 4, "u" = 2, 4,
// 6, 8 and "v", which is a little more, as f32; "g" the cotangent of four elements; "n" = 0, 1 as i64.
class RunnerTest : public ::testing::Test {
 protected:
  RowResult run(const std::string& row, bool is_error = false) {
    // Named after the test: several may run at once.
    std::string stem =
        std::string("weft_runner_") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::path path = ::testing::TempDir() + stem + ".json";
    SafeTensors tensors;
    for (const auto& [name, factor] : {std::pair("t", 1.0f), std::pair("u", 2.0f)}) {
      Tensor tensor = allocate_contiguous({4}, kFloat32);
      for (int i = 0; i < 4; ++i) tensor.data<float>()[i] = factor * static_cast<float>(i + 1);
      tensors.add(name, tensor);
    }
    Tensor cotangent = allocate_contiguous({4}, kFloat32);
    for (int i = 0; i < 4; ++i) cotangent.data<float>()[i] = static_cast<float>((7 * i + 3) % 11 - 5) / 4;
    tensors.add("g", cotangent);
    Tensor more = allocate_contiguous({4}, kFloat32);
    for (int i = 0; i < 4; ++i) more.data<float>()[i] = 2 * static_cast<float>(i + 1) + 0.005f;
    tensors.add("v", more);
    Tensor classes = allocate_contiguous({2}, kInt64);
    for (int i = 0; i < 2; ++i) classes.data<int64_t>()[i] = i;
    tensors.add("n", classes);
    save_safetensors(tensors, ::testing::TempDir() + stem + ".safetensors");
    std::string samples = is_error ? "" : row, errors = is_error ? row : "";
    std::ofstream(path) << R"({"format": 1, "torch": "x", "family": "f", "tensors": ")" << stem
                        << R"(.safetensors", "samples": [)" << samples << R"(], "errors": [)" << errors
                        << "]}";
    SampleFile file = SampleFile::load(path);
    return run_row(file, file.rows().at(0));
  }

  static std::string input(const std::string& extra = "") {
    return R"({"storage": "t", "dtype": "float32", "sizes": [4], "strides": [1], "offset": 0)" + extra + "}";
  }
  static std::string output(const std::string& values, const std::string& extra = "") {
    return R"({"values": ")" + values +
           R"(", "dtype": "float32", "sizes": [4], "strides": [1], "offset": 0)" + extra + "}";
  }
  // x + x
  RowResult add(const std::string& out, const std::string& rest = "", const std::string& other = input()) {
    return run(R"({"id": "i", "overload": "aten::add.Tensor", "args": [["self", )" + input() +
               R"(], ["other", )" + other + R"(], ["alpha", 1]], "out": [)" + out + "]" + rest + "}");
  }
  // x += x
  RowResult add_inplace(const std::string& out, const std::string& after) {
    return run(R"({"id": "i", "overload": "aten::add_.Tensor", "args": [["self", )" + input() +
               R"(], ["other", )" + input() + R"(], ["alpha", 1]], "out": [)" + out +
               R"(], "after": {"self": )" + after + "}}");
  }
  static std::string words(const RowResult& result) { return ::testing::PrintToString(result.differences); }
};

TEST_F(RunnerTest, PassesWhatAgrees) {
  EXPECT_EQ(words(add(output("u"))), "{}");
  EXPECT_EQ(add(output("u")).outcome, Outcome::kPassed);
  std::string grads = R"(, "vjp": {"self": )" + output("g") + R"(, "other": )" + output("g") + "}";
  EXPECT_EQ(words(add(output("u"), grads)), "{}");
}

TEST_F(RunnerTest, FindsOtherValues) {
  RowResult result = add(output("t"));
  EXPECT_EQ(result.outcome, Outcome::kFailed);
  EXPECT_THAT(result.differences,
              ElementsAre("out[0]: 4 of 4 values differ, first at [0]: got 2, expected 1"));
}

TEST_F(RunnerTest, AllowsTheNoiseThatIsStored) {
  // "v" is "u" with 0.005 more: a noise of 0.0039 is no more than a thousandth of most.
  EXPECT_EQ(words(add(output("v"), R"(, "noise": [0.0039])")), "{}");
  EXPECT_EQ(add(output("v"), R"(, "noise": [0.002])").outcome, Outcome::kFailed);
}

TEST_F(RunnerTest, ComparesEachElementWhereTheNoiseWouldHideThem) {
  EXPECT_EQ(words(add(output("u"), R"(, "noise": [2.0])")), "{}");
  // Half of what it was is within twice the noise, but no answer of double precision is that far away.
  EXPECT_THAT(words(add(output("t"), R"(, "noise": [2.0])")), HasSubstr("4 of 4 values differ"));
  // With a noise of 4 what is stored may be that far from the truth, which is what came.
  EXPECT_EQ(words(add(output("t"), R"(, "noise": [4.0])")), "{}");
}

TEST_F(RunnerTest, ComparesGradientsThatPyTorchDoesNotHave) {
  EXPECT_EQ(words(add(output("u"), R"(, "vjp_error": "derivative for aten::add is not implemented")")), "{}");
  // What is given for `weight` changes the result, and there is no gradient of it.
  const std::string matrix =
      R"({"storage": "t", "dtype": "float32", "sizes": [2, 2], "strides": [2, 1], "offset": 0})";
  const std::string head =
      R"({"id": "i", "overload": "aten::nll_loss_forward", "args": [["self", )" + matrix +
      R"(], ["target", {"storage": "n", "dtype": "int64", "sizes": [2], "strides": [1], )" +
      R"("offset": 0}], ["weight", {"storage": "t", "dtype": "float32", "sizes": [2], )" +
      R"("strides": [1], "offset": 2}], ["reduction", 2], ["ignore_index", -100]], )";
  const std::string tail =
      R"("out_is": "tuple", "vjp_of": [0], "vjp_error": "not differentiable with respect to argument 'weight'", )"
      R"("out": [{"values": null, "dtype": "float32", "sizes": [], "strides": [], "offset": 0}, )"
      R"({"values": null, "dtype": "float32", "sizes": [], "strides": [], "offset": 0}]})";
  EXPECT_EQ(words(run(head + tail)), "{}");
}

TEST_F(RunnerTest, FindsOtherTypesAndGeometry) {
  auto entry = [](const char* dtype, const char* sizes, const char* strides, int offset) {
    return fmt::format(R"({{"values": "u", "dtype": "{}", "sizes": {}, "strides": {}, "offset": {}}})", dtype,
                       sizes, strides, offset);
  };
  EXPECT_THAT(words(add(entry("float64", "[4]", "[1]", 0))),
              HasSubstr("dtype: got float32, expected float64"));
  EXPECT_THAT(words(add(entry("float32", "[2, 2]", "[2, 1]", 0))),
              HasSubstr("sizes: got [4], expected [2, 2]"));
  EXPECT_THAT(words(add(entry("float32", "[4]", "[2]", 0))), HasSubstr("strides: got [1], expected [2]"));
  EXPECT_THAT(words(add(entry("float32", "[4]", "[1]", 3))), HasSubstr("offset: got 0, expected 3"));
  EXPECT_THAT(words(add(output("u", R"(, "conj": true)"))), HasSubstr("conj: got false, expected true"));
}

TEST_F(RunnerTest, FindsOtherStructure) {
  EXPECT_THAT(words(add(output("u"), R"(, "out_is": "tuple")")),
              HasSubstr("got one result, expected a tuple"));
  EXPECT_THAT(words(add("null")), HasSubstr("got f32[4] (a tensor), expected None"));
  EXPECT_THAT(words(add(output("u") + ", " + output("u"))), HasSubstr("1 results, expected 2"));
}

TEST_F(RunnerTest, FindsOtherAliasing) {
  EXPECT_THAT(words(add(output("u", R"(, "alias_of": "self")"))),
              HasSubstr("does not share the memory of self"));
  std::string fine = output("u", R"(, "alias_of": "self", "same_object": true)");
  EXPECT_EQ(words(add_inplace(fine, output("u"))), "{}");
  EXPECT_THAT(words(add_inplace(output("u"), output("u"))),
              HasSubstr("shares the memory of self, expected fresh memory"));
  EXPECT_THAT(words(add_inplace(output("u", R"(, "alias_of": "other")"), output("u"))),
              HasSubstr("does not share the memory of other"));
  EXPECT_THAT(
      words(run(R"({"id": "i", "overload": "aten::alias", "args": [["self", )" + input() + R"(]], "out": [)" +
                output("t", R"(, "alias_of": "self", "same_object": true)") + "]}")),
      HasSubstr("is not self itself"));
}

TEST_F(RunnerTest, FindsOtherStatesOfWrittenArguments) {
  EXPECT_THAT(words(add_inplace(output("u", R"(, "alias_of": "self")"), output("t"))),
              HasSubstr("after self: 4 of 4 values differ"));
}

TEST_F(RunnerTest, FindsWritesThatTheRowDoesNotKnow) {
  EXPECT_THAT(
      words(run(
          R"({"id": "i", "overload": "aten::neg_", "args": [["self", )" + input() + R"(]], "out": [)" +
          R"({"values": null, "dtype": "float32", "sizes": [4], "strides": [1], "offset": 0, "alias_of": "self"}]})")),
      HasSubstr("argument self was changed"));
}

TEST_F(RunnerTest, SharesMemoryWhereTheRowSaysSo) {
  RowResult result =
      run(R"({"id": "i", "overload": "aten::add_.Tensor", "args": [["self", )" + input(R"(, "memory": 0)") +
          R"(], ["other", )" + input(R"(, "memory": 0)") + R"(], ["alpha", 1]], "out": [)" +
          output("u", R"(, "alias_of": "self", "same_object": true)") + R"(], "after": {"self": )" +
          output("u") + "}}");
  EXPECT_EQ(words(result), "{}");  // `other` is the same memory: that it changed is right
}

TEST_F(RunnerTest, FindsOtherGradients) {
  auto with = [&](const std::string& self) {
    return add(output("u"), R"(, "vjp": {"self": )" + self + R"(, "other": )" + output("g") + "}");
  };
  EXPECT_THAT(words(with(output("t"))), HasSubstr("vjp self: 4 of 4 values differ"));
  EXPECT_THAT(words(with("null")), HasSubstr("vjp self: got a gradient, expected none"));
  EXPECT_THAT(words(add(output("u"), R"(, "vjp": {"self": )" + output("g") + "}")),
              HasSubstr("vjp other: nothing is stored"));
}

TEST_F(RunnerTest, TakesNumbersForTensors) {
  RowResult result = add(output("t"), "", "0");
  EXPECT_EQ(words(result), "{}");
  // A double as a 0-dim f64 tensor would promote nothing either, but a wrapped complex number promotes to
  // complex64.
  EXPECT_THAT(words(add(output("t"), "", R"({"c": [0, 1]})")), HasSubstr("dtype: got complex64"));
}

TEST_F(RunnerTest, WantsBadCallsToFail) {
  std::string head =
      R"({"id": "i", "overload": "aten::select.int", "args": [["self", )" + input() + R"(], ["dim", )";
  std::string tail = R"(], ["index", 0]], "error": "IndexError", "message": "Dimension out of range"})";
  RowResult fails = run(head + "5" + tail, true);
  EXPECT_EQ(fails.outcome, Outcome::kPassed);
  EXPECT_THAT(fails.message, HasSubstr("Dimension out of range"));
  RowResult works = run(head + "0" + tail, true);
  EXPECT_EQ(works.outcome, Outcome::kFailed);
  EXPECT_THAT(words(works), HasSubstr("no error, expected: Dimension out of range"));
}

TEST_F(RunnerTest, WantsThemToFailAsAMistakeOfTheCaller) {
  auto verdict = [](FunctionRef<void()> call) -> std::optional<std::string> {
    try {
      call();
    } catch (const Error& error) {
      return wrong_kind(error);
    }
    return "no error";
  };
  EXPECT_EQ(verdict([] { fail("wrong"); }), std::nullopt);
  EXPECT_THAT(*verdict([] { unsupported("not there"); }),
              HasSubstr("expected a mistake of the caller: not there"));
  EXPECT_THAT(*verdict([] { invariant(false, "broken"); }), HasSubstr("internal error: "));
  // A row whose arguments are no tensors at all says nothing about the operator.
  RowResult unmade = run(
      R"({"id": "i", "overload": "aten::neg", "args": [["self", {"storage": "t", "dtype": "float32", "sizes": [9], )"
      R"("strides": [1], "offset": 0}]], "error": "RuntimeError", "message": "wrong"})",
      true);
  EXPECT_THAT(words(unmade), HasSubstr("the arguments cannot be made: "));
}

TEST_F(RunnerTest, SaysWhyARowIsSkipped) {
  RowResult missing = run(R"({"id": "i", "overload": "aten::no_such_operator", "args": [], "out": []})");
  EXPECT_EQ(missing.outcome, Outcome::kSkipped);
  EXPECT_TRUE(missing.is_missing);
  EXPECT_EQ(missing.reason, "not defined");
  RowResult unbound =
      run(R"({"id": "i", "overload": null, "call": {}, "error": "TypeError", "message": "no"})", true);
  EXPECT_EQ(unbound.reason, "refused before any operator ran");
  EXPECT_FALSE(unbound.is_missing);
}

TEST_F(RunnerTest, ReportsErrorsOfGoodCalls) {
  EXPECT_THAT(
      words(add(output("u"), "",
                R"({"storage": "t", "dtype": "float32", "sizes": [3], "strides": [1], "offset": 0})")),
      HasSubstr("error: "));
  EXPECT_THAT(
      words(add(output("u"), "",
                R"({"storage": "t", "dtype": "float32", "sizes": [5], "strides": [1], "offset": 0})")),
      HasSubstr("reaches beyond its storage"));
}

}  // namespace
}  // namespace weft::recorded
