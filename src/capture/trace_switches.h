#pragma once

#include <optional>
#include <string>

#include "weft/base/device_event.h"

namespace weft {

// What the environment asks of traces, as it was when the process began. A switch is on when its variable has
// a text that is neither empty nor "0". None of them changes what programs compute.
struct TraceSwitches {
  bool disabled = false;  // WEFT_TRACE_DISABLE, or WEFT_TRACE=0: `trace` gives back what it is given
  bool time = false;      // WEFT_TRACE_TIME: every trace prints how long recording and checking took
  bool stats = false;     // WEFT_TRACE_STATS: every trace prints what its graph holds
};
const TraceSwitches& trace_switches();

// Prints "{trace_name} {name} time: {milliseconds} ms" when it ends, by an exception too. Does nothing unless
// `time` or WEFT_TRACE_TIME asks for it, and the process has used a device with timers.
class TraceTimeScope {
 public:
  TraceTimeScope(std::string trace_name, std::string name, bool time = true);
  ~TraceTimeScope();
  TraceTimeScope(const TraceTimeScope&) = delete;
  TraceTimeScope& operator=(const TraceTimeScope&) = delete;

 private:
  struct Timer {
    std::string what;
    DeviceEvent start, end;
  };
  std::optional<Timer> timer_;  // nothing: nobody asks
};

}  // namespace weft
