#pragma once

#include "weft/ops/layers.h"

namespace weft {

struct RecordedCall {
  const Operator* op;
  std::vector<Value> args;
  Value result;
};

// Keeps the calls that pass it, in order. Above autograd it sees what the user called (composites whole, no
// backward); below it sees what they came to, the backward pass included.
class Recorder {
 public:
  enum class Position : uint8_t { kUpper, kLower };

  // The names of the recorded operators: "aten::mul.Tensor", ...
  std::vector<std::string> names() const;
  std::vector<RecordedCall> calls;
};

// Records the calls of this thread for a scope.
class RecorderScope {
 public:
  RecorderScope(Recorder& recorder, Recorder::Position position);
  ~RecorderScope();
  RecorderScope(const RecorderScope&) = delete;

 private:
  Recorder** slot_;
  Recorder* outer_;
  uint32_t bit_;
};

}  // namespace weft
