#pragma once

#include "weft/base/function_ref.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/origin.h"

namespace weft {

// Answers every operator call that passes its layer. Above autograd it sees what the user
// called (composites whole, no backward); below it sees their decomposition, the backward pass included.
class Recorder {
 public:
  enum class Position : uint8_t { kUpper, kLower };

  virtual ~Recorder() = default;
  // `run` passes arguments on to the layers below and gives their result.
  virtual Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) = 0;
  // In the upper position: the program switched the recording of gradients on or off.
  virtual void grad_mode_changed(bool) {}
  // Whether control flow over functions stays what it is. Otherwise it is C++ control flow, and what ran is
  // recorded.
  virtual bool keeps_control_flow() const { return true; }
  // In the lower position: whether calls on this extension are recorded as they are. Otherwise those on its
  // inner tensors are.
  virtual bool takes_whole(const Tensor&) const { return false; }
  // What it would note of a call that is made now.
  virtual Origin origin_here() const { return {}; }
  // Where the call that it answered last comes from, for its gradient; null where it does not note that.
  virtual OriginRef origin_of_last_call() const { return nullptr; }

  // The recorder of this thread in that position; null where there is none.
  static Recorder* current(Position position) noexcept;
};

// Sends the calls of this thread to a recorder for a scope.
class RecorderScope {
 public:
  RecorderScope(Recorder& recorder, Recorder::Position position);
  ~RecorderScope();
  RecorderScope(const RecorderScope&) = delete;

 private:
  Recorder** slot_;
  Recorder* outer_;
  uint32_t bit_;
  OriginWatch watch_;
};

struct RecordedCall {
  const Operator* op;
  std::vector<Value> args;
  Value result;
};

// Keeps the calls, in order, and changes nothing.
class CallList final : public Recorder {
 public:
  Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) override;
  // The names of the recorded operators: "aten::mul.Tensor", ...
  std::vector<std::string> names() const;

  std::vector<RecordedCall> calls;
};

}  // namespace weft
