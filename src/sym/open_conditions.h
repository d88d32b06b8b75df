#pragma once

namespace weft::sym {

// While one is alive on this thread, comparisons of symbolic numbers stay open: what ranges and facts say of
// them, or of their operands, is left aside. What a program asserts is computed so; once it was learnt,
// nothing would be left to assert.
class OpenConditions {
 public:
  OpenConditions() { ++depth_; }
  ~OpenConditions() { --depth_; }
  OpenConditions(const OpenConditions&) = delete;
  OpenConditions& operator=(const OpenConditions&) = delete;

  static bool is_on() { return depth_ != 0; }

 private:
  static constinit thread_local int depth_;
};

}  // namespace weft::sym
