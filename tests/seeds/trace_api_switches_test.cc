// Ports of TraceApi: switches of the environment, and timing.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "capture/trace_switches.h"
#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const Device kSim(DeviceType::kSim);

using Variables = std::map<std::string, std::string>;

// Sets variables as long as it lives.
class Environment {
 public:
  explicit Environment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, text] : variables_) ::setenv(name.c_str(), text.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, text] : variables_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;

 private:
  Variables variables_;
};

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(2, 1));
  Net() {
    NoGrad no_grad;
    fc.weight.fill_(2);
    fc.bias.fill_(1);
  }
  Tensor forward(const Tensor& x) { return fc(x) * 3; }
  WEFT_ARGS(x)
};

// What a process that began with this environment has to tell, on its stderr.
[[noreturn]] void report(bool use_sim) {
  // A process changes nothing by setting them later.
  Environment later(
      Variables{{"WEFT_TRACE_TIME", "1"}, {"WEFT_TRACE_DISABLE", "1"}, {"WEFT_TRACE_STATS", "1"}});
  const TraceSwitches& switches = trace_switches();
  if (use_sim) ones({1}, {}, {}, kSim);
  ::dup2(2, 1);
  Tensor x = from_data<float>({1, 2, 3, 4}).view({2, 2});
  TracedModule module = trace(Net(), x);
  TraceOptions options;
  options.name = "twice";
  TracedFunction function = trace([](const Tensor& t) { return t * 2; }, x, options);
  std::cerr << fmt::format("disabled={} time={} stats={} enabled={} recorded={}{} results={} {}\n",
                           switches.disabled, switches.time, switches.stats, is_tracing_enabled(),
                           module.method("forward").is_recorded(), function.is_recorded(),
                           fmt::join(testing::values(module(x)), ","),
                           fmt::join(testing::values(function(x)), ","));
  std::exit(0);
}

// Death tests in this style begin a process anew.
void expect_report(const Variables& variables, const ::testing::Matcher<const std::string&>& words,
                   bool use_sim = false) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Environment environment(variables);
  EXPECT_EXIT(report(use_sim), ::testing::ExitedWithCode(0), words);
}

TEST(TraceApi, test_api_environment_switches) {
  const std::string results = "results=21,45 2,4,6,8";
  auto line = [&](const char* switches, const char* recorded) {
    return HasSubstr(fmt::format("{} recorded={} {}\n", switches, recorded, results));
  };
  const auto no_times = Not(HasSubstr(" time: ")), no_stats = Not(HasSubstr(" stats: "));
  auto off = line("disabled=false time=false stats=false enabled=true", "truetrue");
  expect_report(Variables(), AllOf(off, no_times, no_stats), true);
  expect_report(Variables{{"WEFT_TRACE_TIME", ""}, {"WEFT_TRACE_DISABLE", "0"}, {"WEFT_TRACE_STATS", "0"}},
                AllOf(off, no_times, no_stats), true);
  expect_report(Variables{{"WEFT_TRACE_TIME", "1"}},
                AllOf(line("disabled=false time=true stats=false enabled=true", "truetrue"), no_stats,
                      HasSubstr("Net.forward trace time: "), HasSubstr("Net.forward check time: "),
                      HasSubstr("twice trace time: "), HasSubstr("twice check time: ")),
                true);
  expect_report(Variables{{"WEFT_TRACE_STATS", "1"}},
                AllOf(line("disabled=false time=false stats=true enabled=true", "truetrue"), no_times,
                      HasSubstr("Net.forward stats: 1 inputs, 2 attributes, 2 calls\n"),
                      HasSubstr("twice stats: 1 inputs, 0 attributes, 1 calls\n")));
  auto disabled = line("disabled=true time=false stats=false enabled=false", "falsefalse");
  for (auto [name, text] : {std::pair("WEFT_TRACE_DISABLE", "1"), std::pair("WEFT_TRACE", "0")})
    expect_report(Variables{{name, text}}, AllOf(disabled, no_times, no_stats));
  expect_report(Variables{{"WEFT_TRACE", "1"}}, off);
  expect_report(
      Variables{{"WEFT_TRACE_DISABLE", "1"}, {"WEFT_TRACE_TIME", "1"}, {"WEFT_TRACE_STATS", "1"}},
      AllOf(line("disabled=true time=true stats=true enabled=false", "falsefalse"), no_times, no_stats),
      true);
}

std::string printed_by(FunctionRef<void()> run) {
  ::testing::internal::CaptureStdout();
  run();
  std::fflush(stdout);
  return ::testing::internal::GetCapturedStdout();
}

// Without a device that has timers there is nothing to print.
[[noreturn]] void report_times() {
  ::dup2(2, 1);
  {
    TraceTimeScope scope("early", "run", true);
  }
  std::fprintf(stderr, "timers=%d\n", device_with_timers().has_value());
  ones({1}, {}, {}, Device(DeviceType::kSim, 1));
  {
    TraceTimeScope scope("late", "run", true);
  }
  std::fflush(stdout);
  std::fprintf(stderr, "timers=%s\n", device_with_timers()->to_string().c_str());
  std::exit(0);
}

TEST(TraceApi, test_api_time_scope_print) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(report_times(), ::testing::ExitedWithCode(0),
              AllOf(HasSubstr("timers=0\n"), HasSubstr("timers=sim:1\n"), HasSubstr("late run time: "),
                    Not(HasSubstr("early"))));
  Tensor there = ones({2}, {}, {}, kSim);
  ASSERT_TRUE(device_with_timers().has_value());
  const std::string words = "net forward time: [0-9.e-]+ ms\n";
  EXPECT_THAT(printed_by([] { TraceTimeScope scope("net", "forward"); }), MatchesRegex(words));
  EXPECT_EQ(printed_by([] { TraceTimeScope scope("net", "forward", false); }), "");
  // Also when what it times throws.
  EXPECT_THAT(printed_by([] {
                EXPECT_ERROR(
                    [] {
                      TraceTimeScope scope("net", "forward");
                      fail("trouble");
                    }(),
                    "trouble");
              }),
              MatchesRegex(words));
  // The time is that of what ran.
  std::string text = printed_by([] {
    TraceTimeScope scope("net", "forward");
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < end) {
    }
  });
  const double milliseconds = std::stod(text.substr(std::string("net forward time: ").size()));
  EXPECT_GE(milliseconds, 20);

  DeviceEvent start(kSim), end(kSim), other(Device(DeviceType::kSim, 2));
  EXPECT_ERROR(start.synchronize(), "the event on sim:0 was never recorded");
  start.record();
  EXPECT_ERROR(start.milliseconds_until(end), "was never recorded");
  end.record();
  end.synchronize();
  EXPECT_GE(start.milliseconds_until(end), 0);
  EXPECT_ERROR(start.milliseconds_until(other), "events of sim:0 and of sim:2");
  EXPECT_ERROR(DeviceEvent(kCpu), "cpu has no timers");
}

}  // namespace
}  // namespace weft
