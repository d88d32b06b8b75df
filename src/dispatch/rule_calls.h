#pragma once

namespace weft::dispatch {

// The calls in this scope are those of an operator's own rule, not of a program. Recorders write them as the
// C++ of ATen makes them: a number is a Scalar (`mul.Scalar`), and options that nobody gave are left out.
class RuleCalls {
 public:
  explicit RuleCalls(bool are_of_rule = true);
  ~RuleCalls();
  RuleCalls(const RuleCalls&) = delete;
  RuleCalls& operator=(const RuleCalls&) = delete;

 private:
  bool saved_;
};
bool calls_are_of_rule();

}  // namespace weft::dispatch
