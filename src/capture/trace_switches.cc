#include "capture/trace_switches.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

namespace weft {
namespace {

std::string_view environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

TraceSwitches read_switches() {
  auto is_on = [](const char* name) { return !environment(name).empty() && environment(name) != "0"; };
  return {.disabled = is_on("WEFT_TRACE_DISABLE") || environment("WEFT_TRACE") == "0",
          .time = is_on("WEFT_TRACE_TIME"),
          .stats = is_on("WEFT_TRACE_STATS")};
}

// Read when the process begins, not when the first trace is made.
[[maybe_unused]] const TraceSwitches& at_start = trace_switches();

}  // namespace

const TraceSwitches& trace_switches() {
  static const TraceSwitches switches = read_switches();
  return switches;
}

TraceTimeScope::TraceTimeScope(std::string trace_name, std::string name, bool time) {
  if (!time && !trace_switches().time) return;
  std::optional<Device> device = device_with_timers();
  if (!device) return;
  timer_.emplace(Timer{trace_name + " " + name, DeviceEvent(*device), DeviceEvent(*device)});
  timer_->start.record();
}

TraceTimeScope::~TraceTimeScope() {
  if (!timer_) return;
  timer_->end.record();
  timer_->end.synchronize();
  fmt::print("{} time: {} ms\n", timer_->what, timer_->start.milliseconds_until(timer_->end));
}

}  // namespace weft
