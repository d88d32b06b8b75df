#include "weft/autograd/anomaly.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>

namespace weft {
namespace {

thread_local bool enabled = false;
thread_local bool check_nan = true;

std::string function_at(void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_sname) return {};
  int status = 0;
  char* demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 && demangled ? demangled : info.dli_sname;
  std::free(demangled);
  return name;
}

// The callers outside weft's own namespaces, innermost first.
std::string user_frames() {
  void* addresses[48];
  int count = backtrace(addresses, 48);
  std::string text;
  int kept = 0;
  for (int i = 1; i < count && kept < 8; ++i) {
    std::string name = function_at(addresses[i]);
    if (name.empty() || name.starts_with("weft::autograd") || name.starts_with("weft::dispatch")) continue;
    text += "\n    in " + name;
    ++kept;
  }
  return text;
}

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
    node.forward_trace = std::make_unique<std::string>(user_frames());
}

}  // namespace weft
