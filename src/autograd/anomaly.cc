#include "weft/autograd/anomaly.h"

namespace weft {
namespace {

thread_local bool enabled = false;
thread_local bool check_nan = true;

}  // namespace

DetectAnomaly::DetectAnomaly(bool nan) : saved_enabled_(enabled), saved_check_nan_(check_nan) {
  enabled = true;
  check_nan = nan;
}
DetectAnomaly::~DetectAnomaly() {
  enabled = saved_enabled_;
  check_nan = saved_check_nan_;
}

bool autograd::anomaly_enabled() { return enabled; }
bool autograd::anomaly_checks_nan() { return enabled && check_nan; }
void autograd::note_forward_call(GradNode& node) {
  if (enabled) [[unlikely]]
    node.forward_trace = std::make_unique<const StackTrace>(StackTrace::capture());
}

}  // namespace weft
