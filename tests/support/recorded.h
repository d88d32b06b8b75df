#pragma once

#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/dispatch/recorder.h"

namespace weft::testing {

// The names of the operators that a recorder in this position sees of `f`.
inline std::vector<std::string> recorded(Recorder::Position position, FunctionRef<void()> f) {
  CallList recorder;
  {
    RecorderScope scope(recorder, position);
    f();
  }
  return recorder.names();
}

}  // namespace weft::testing
