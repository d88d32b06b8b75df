#pragma once

#include "weft/autograd/grad_node.h"

namespace weft {

// While it lives, every recorded call remembers where it was made, and backward stops at the first gradient
// that holds a NaN, naming that line.
class DetectAnomaly {
 public:
  explicit DetectAnomaly(bool check_nan = true);
  ~DetectAnomaly();

 private:
  bool saved_enabled_, saved_check_nan_;
};

namespace autograd {
bool anomaly_enabled();
bool anomaly_checks_nan();
// In anomaly mode, keeps the forward call's stack trace on the node.
void note_forward_call(GradNode& node);
}  // namespace autograd

}  // namespace weft
