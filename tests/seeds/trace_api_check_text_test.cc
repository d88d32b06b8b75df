// Ports of TraceApi: the texts of the checker's warnings and errors.
#include <gmock/gmock.h>

#include "base/diff.h"
#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/autograd/function.h"
#include "weft/capture/inlining.h"
#include "weft/dispatch/layers.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::warnings_of;

std::string error_of(FunctionRef<void()> run) {
  try {
    run();
  } catch (const TracingCheckError& error) {
    EXPECT_EQ(error.message(), error.what());
    return error.message();
  }
  ADD_FAILURE() << "no error came";
  return {};
}

TEST(TraceApi, test_api_indent_helper) {
  EXPECT_EQ(indent("a\nb\n"), "\ta\n\tb");
  EXPECT_EQ(indent("a\nb"), "\ta\n\tb");
  EXPECT_EQ(indent("a\n\nb"), "\ta\n\t\n\tb");
  EXPECT_EQ(indent(""), "");
}

TEST(TraceApi, test_api_tracing_check_error_layout) {
  const std::string head = "Tracing failed sanity checks!\n";
  const std::string graphs = "ERROR: Graphs differed across invocations!\n\tg1\n\tg2\n";
  const std::string tensors =
      "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that "
      "the tracer has encountered untraceable code.\n\tt1\n\tt2\n";
  for (int given = 0; given < 8; ++given) {
    bool has_graph = given & 1, has_tensor = given & 2, has_extra = given & 4;
    TracingCheckError error(has_graph ? "g1\ng2\n" : "", has_tensor ? "t1\nt2" : "",
                            has_extra ? "extra" : "");
    std::string wanted =
        head + (has_extra ? "extra\n" : "") + (has_graph ? graphs : "") + (has_tensor ? tensors : "");
    EXPECT_EQ(error.message(), wanted);
    EXPECT_EQ(std::string(error.what()), wanted);
  }
}

TEST(TraceApi, test_api_check_mismatch_warning_layout) {
  // Only the plain run differs, in its first and third result.
  auto f = [](const Tensor& x) {
    Tensor y = is_tracing() ? x * 2 : x * 2 + 1;
    return std::tuple(y, x * 3, y);
  };
  auto wanted = [](int number, const char* what, const char* detail) {
    return fmt::format(
        "TracerWarning: Output nr {}. of the traced function does not match the corresponding output of the "
        "{}. "
        "Detailed error:\n{}",
        number, what, detail);
  };
  const char* detail =
      "Tensor-likes are not close!\n\nMismatched elements: 2 / 2 (100.0%)\n"
      "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n"
      "Greatest relative difference: 0.3333333333333333 at index (0,) (up to 1e-05 allowed)";
  EXPECT_THAT(warnings_of([&] { trace(f, ones({2})); }),
              ElementsAre(wanted(1, "Python function", detail), wanted(3, "Python function", detail)));
  // Only the repeated trace differs: said in the same words, and then the constant is an error.
  auto g = [n = 0](const Tensor& x) mutable {
    int run = ++n;
    return x + from_data<float>({run == 2 ? 5.0f : 1.0f, 1.0f});
  };
  const char* repeated =
      "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
      "Greatest absolute difference: 4.0 at index (0,) (up to 1e-05 allowed)\n"
      "Greatest relative difference: 0.6666666666666666 at index (0,) (up to 1e-05 allowed)";
  EXPECT_THAT(
      warnings_of([&] { EXPECT_ERROR_TYPE(TracingCheckError, trace(g, ones({2})), "differed in value"); }),
      ElementsAre(wanted(1, "repeated trace", repeated)));
  // Where the plain run differs, the repeated trace is not compared.
  auto h = [n = 0](const Tensor& x) mutable {
    ++n;
    return x + from_data<float>({static_cast<float>(n)});
  };
  EXPECT_THAT(
      warnings_of([&] { EXPECT_ERROR_TYPE(TracingCheckError, trace(h, ones({2})), "differed in value"); }),
      ElementsAre(HasSubstr("output of the Python function")));
}

TEST(TraceApi, test_api_check_nondeterministic_warning_layout) {
  const std::string head =
      "TracerWarning: Trace had nondeterministic nodes. Did you forget call .eval() on your model? "
      "Nodes:\n\t";
  const std::string tail =
      "\nThis may cause errors in trace checking. To disable trace checking, pass check_trace=False to "
      "torch.jit.trace(): in C++, trace(f, inputs, {.check_trace = false})";
  auto f = [](const Tensor& x) { return dropout(x, 0.5, true); };
  TracedFunction traced = trace(f, ones({50}), {.check_trace = false});
  std::string line;
  for (const std::string& one : split_lines(traced.graph_text()))
    if (one.find("aten::dropout") != std::string::npos) line = one.substr(2, one.size() - 3);
  ASSERT_THAT(line,
              ::testing::StartsWith(
                  "%3 : Float(50, strides=[1], requires_grad=0, device=cpu) = aten::dropout(%arg0, %1, %2)"));
  EXPECT_THAT(warnings_of([&] { trace(f, ones({50})); }),
              ElementsAre(head + line + tail, HasSubstr("Output nr 1. of the traced function")));
  // Once for each input that is checked.
  EXPECT_THAT(warnings_of([&] {
                trace([&](const Tensor& x) { return std::tuple(f(x), f(x)); }, ones({50}),
                      {.check_inputs = {ones({40}), ones({60})}});
              }),
              ElementsAre(StartsWith(head), HasSubstr("nr 1."), HasSubstr("nr 2."), StartsWith(head),
                          HasSubstr("nr 1."), HasSubstr("nr 2.")));
  // At most 20 nodes.
  auto many = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 23; ++i) y = y + rand_like(x);
    return y;
  };
  std::vector<std::string> warnings = warnings_of([&] { trace(many, ones({50})); });
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], StartsWith(head));
  EXPECT_THAT(warnings[0], EndsWith(tail));
  EXPECT_EQ(std::count(warnings[0].begin(), warnings[0].end(), '\t'), 20);
  EXPECT_EQ(std::count(warnings[0].begin(), warnings[0].end(), '\n'), 21);
  // Not without such nodes; dropout is one only where it draws; and not where nothing differs.
  auto differs = [](const Tensor& x) {
    Tensor y = dropout(x, 0.5, false);
    return is_tracing() ? y : y + 1;
  };
  EXPECT_THAT(warnings_of([&] { trace(differs, ones({50})); }), ElementsAre(HasSubstr("Output nr 1.")));
  EXPECT_THAT(warnings_of([&] { trace([](const Tensor& x) { return dropout(x, 0.0, true); }, ones({50})); }),
              IsEmpty());
}

struct TroubledIdentity : autograd::Function<TroubledIdentity> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) {
    if (++calls == 5) throw std::runtime_error("fifth call");
    return x.clone();
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return grads;
  }
  static inline int calls = 0;
};

TEST(TraceApi, test_api_check_exception_message) {
  auto extra = [](const char* what, const char* words) {
    return fmt::format(
        "Tracing failed sanity checks!\nencountered an exception while running the {} with test inputs.\n"
        "Exception:\n\t{}\n",
        what, words);
  };
  auto in_plain_run = [](const Tensor& x) {
    if (!is_tracing()) throw std::runtime_error("plain trouble");
    return x + 1;
  };
  EXPECT_EQ(error_of([&] { trace(in_plain_run, ones({2})); }), extra("Python function", "plain trouble"));
  // With what else is wrong.
  auto differs_too = [n = 0](const Tensor& x) mutable {
    if (!is_tracing()) throw std::runtime_error("plain trouble");
    return ++n == 1 ? x + 1 : x * 2;
  };
  EXPECT_THAT(error_of([&] { trace(differs_too, ones({2})); }),
              StartsWith(extra("Python function", "plain trouble") +
                         "ERROR: Graphs differed across invocations!\n\tGraph diff:\n"));
  // The recording does not run on what the check gives it: a number of rows that it took as fixed.
  auto fixed = [](const Tensor& x) { return x.view({is_tracing() ? *x.size(0).hint() : 2}) + 1; };
  std::string of_trace = error_of([&] { trace(fixed, ones({2}), {.check_inputs = {ones({3})}}); });
  EXPECT_THAT(of_trace,
              StartsWith("Tracing failed sanity checks!\nencountered an exception while running the "
                         "trace with test inputs.\nException:\n\t"));
  EXPECT_THAT(of_trace, HasSubstr("ERROR: Graphs differed across invocations!\n"));
  // Recorded twice, run as a trace, run plainly, and then by the repeated trace.
  TroubledIdentity::calls = 0;
  EXPECT_EQ(error_of([&] { trace([](const Tensor& x) { return TroubledIdentity::apply(x); }, ones({2})); }),
            extra("repeated trace", "fifth call"));
  // The exception itself is inside.
  try {
    trace(in_plain_run, ones({2}));
    ADD_FAILURE() << "no error came";
  } catch (const TracingCheckError& error) {
    try {
      std::rethrow_if_nested(error);
      ADD_FAILURE() << "nothing is inside";
    } catch (const std::runtime_error& inner) {
      EXPECT_STREQ(inner.what(), "plain trouble");
    }
  }
}

// A text in which the innermost frame of every location is the only one.
std::string with_innermost_frames(const std::string& text) {
  std::string kept;
  bool was_frame = false;
  for (const std::string& line : split_lines(text)) {
    bool is_frame = line.starts_with("\t\t  at ");
    if (!is_frame) kept += line;
    else if (!was_frame) kept += line.substr(0, line.find(" in ")) + "\n";
    was_frame = is_frame;
  }
  return kept;
}
std::string place(int line) { return fmt::format("\t\t  at {}:{}\n", __FILE__, line); }

TEST(TraceApi, test_api_check_graph_diff_layout) {
  WarningCapture suppressed;
  int line = __LINE__ + 1;
  auto f = [n = 0](const Tensor& x) mutable { return ++n == 1 ? (x + 1).neg() : (x + 2).neg().neg(); };
  EXPECT_EQ(with_innermost_frames(error_of([&] { trace(f, ones({2}), {.arg_names = "x"}); })),
            "Tracing failed sanity checks!\n"
            "ERROR: Graphs differed across invocations!\n"
            "\tGraph diff:\n"
            "\t\t  graph(%x : Tensor):\n"
            "\t\t-   %1 : Tensor = prim::Constant[value={1}]()\n"
            "\t\t?                                       ^\n"
            "\t\t+   %1 : Tensor = prim::Constant[value={2}]()\n"
            "\t\t?                                       ^\n"
            "\t\t    %2 : int = prim::Constant[value=1]()\n"
            "\t\t    %3 : Tensor = aten::add(%x, %1, %2)\n"
            "\t\t    %4 : Tensor = aten::neg(%3)\n"
            "\t\t+   %5 : Tensor = aten::neg(%4)\n"
            "\t\t-   return (%4)\n"
            "\t\t?            ^\n"
            "\t\t+   return (%5)\n"
            "\t\t?            ^\n"
            "\tFirst diverging operator:\n"
            "\tNode diff:\n"
            "\t\t- %1 : Tensor = prim::Constant[value={1}]()\n"
            "\t\t?                                     ^\n"
            "\t\t+ %1 : Tensor = prim::Constant[value={2}]()\n"
            "\t\t?                                     ^\n"
            "\tTrace source location:\n" +
                place(line) + "\tCheck source location:\n" + place(line) +
                // The number is a tensor of the graph.
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often "
                "indicates that the tracer has encountered untraceable code.\n"
                "\tNode:\n"
                "\t\t%1 : Tensor = prim::Constant[value={1}]()\n"
                "\tSource Location:\n" +
                place(line) +
                "\tComparison exception: \tScalars are not equal!\n"
                "\t\t\n"
                "\t\tExpected 2 but got 1.\n"
                "\t\tAbsolute difference: 1\n"
                "\t\tRelative difference: 0.5\n");
}

TEST(TraceApi, test_api_check_tensor_diff_layout) {
  WarningCapture suppressed;
  const std::string head =
      "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that "
      "the "
      "tracer has encountered untraceable code.\n";
  auto tensor_part = [&](const std::string& text) {
    EXPECT_THAT(text,
                StartsWith("Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n"));
    const size_t at = text.find(head);
    return at == std::string::npos ? std::string() : text.substr(at);
  };
  float n = 0;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  int line = __LINE__ + 3;
  auto f = [&](const Tensor& x) {
    n += 1;
    return x + from_data<float>({nan, 1}) + from_data<float>({n, 1}) + from_data<float>({1, n});
  };
  // The first that differs, and not the one of NaNs before it. The graphs show small tensors, so they differ.
  std::string text = with_innermost_frames(error_of([&] { trace(f, ones({2}), {.arg_names = "x"}); }));
  EXPECT_THAT(text, HasSubstr("\t\t-   %4 : Tensor = prim::Constant[value= 1  1 [ CPUFloatType{2} ]]()\n"));
  EXPECT_THAT(text, HasSubstr("\t\t+   %4 : Tensor = prim::Constant[value= 2  1 [ CPUFloatType{2} ]]()\n"));
  EXPECT_EQ(tensor_part(text),
            head +
                "\tNode:\n"
                "\t\t%4 : Tensor = prim::Constant[value= 1  1 [ CPUFloatType{2} ]]()\n"
                "\tSource Location:\n" +
                place(line) +
                "\tComparison exception: \tTensor-likes are not close!\n"
                "\t\t\n"
                "\t\tMismatched elements: 1 / 2 (50.0%)\n"
                "\t\tGreatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n"
                "\t\tGreatest relative difference: 0.5 at index (0,) (up to 1.3e-06 allowed)\n");
  // A number for a tensor is a tensor.
  n = 0;
  auto numbers = [&](const Tensor& x) {
    n += 1;
    return x * n;
  };
  EXPECT_THAT(tensor_part(error_of([&] { trace(numbers, ones({2})); })),
              HasSubstr("\tNode:\n\t\t%1 : Tensor = prim::Constant[value={1}]()\n"));
  // Nothing is compared after the graphs went apart; numbers that are no tensors are skipped.
  n = 0;
  auto apart = [&](const Tensor& x) {
    n += 1;
    return (n == 1 ? x.sin() : x.cos()) + from_data<float>({n, 1});
  };
  EXPECT_EQ(tensor_part(error_of([&] { trace(apart, ones({2})); })), "");
  n = 0;
  auto plain_numbers = [&](const Tensor& x) {
    n += 1;
    return x + full({2}, n);
  };
  EXPECT_EQ(tensor_part(error_of([&] { trace(plain_numbers, ones({2})); })), "");
}

TEST(TraceApi, test_api_check_graph_comparison_is_canonical) {
  auto f = [](const Tensor& x) { return named(is_tracing() ? "y" : "z", x * x.size(0)) + x.sum({0}); };
  EXPECT_THAT(warnings_of([&] { trace(f, rand({3, 4}), {.check_inputs = {rand({5, 6})}}); }), IsEmpty());
  auto renames = [n = 0](const Tensor& x) mutable { return named(fmt::format("v{}", ++n), x * 2) + 1; };
  EXPECT_THAT(warnings_of([&] { trace(renames, rand({3})); }), IsEmpty());
  auto other_types = [](const Tensor& x) { return x * 2; };
  EXPECT_THAT(warnings_of([&] { trace(other_types, rand({3}), {.check_inputs = {rand({3}, kFloat64)}}); }),
              IsEmpty());
  // A call that one run keeps and the other does not is no difference; what is called counts.
  TracedFunction twice = trace([](const Tensor& x) { return x * 2; }, rand({3}), {.name = "twice"}),
                 thrice = trace([](const Tensor& x) { return x * 3; }, rand({3}), {.name = "twice"});
  auto keeps_once = [&, n = 0](const Tensor& x) mutable {
    std::optional<NoInlineScope> keep;
    if (++n == 1) keep.emplace();
    return twice(twice(x)) + 1;
  };
  EXPECT_THAT(warnings_of([&] { trace(keeps_once, rand({3})); }), IsEmpty());
  {
    NoInlineScope keep;
    EXPECT_THAT(warnings_of([&] { trace([&](const Tensor& x) { return twice(x); }, rand({3})); }), IsEmpty());
    auto other_callee = [&, n = 0](const Tensor& x) mutable { return (++n == 2 ? thrice : twice)(x); };
    WarningCapture suppressed;
    EXPECT_ERROR_TYPE(TracingCheckError, trace(other_callee, rand({3})),
                      "Graphs differed across invocations!");
  }
  auto one_more = [n = 0](const Tensor& x) mutable { return ++n == 2 ? (x * 2).neg().neg() : x * 2; };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(one_more, rand({3})), "Graphs differed across invocations!");
  auto other_number = [n = 0](const Tensor& x) mutable { return x * (++n == 2 ? 3 : 2); };
  WarningCapture suppressed;
  EXPECT_ERROR_TYPE(TracingCheckError, trace(other_number, rand({3})), "Graphs differed across invocations!");
}

}  // namespace
}  // namespace weft
