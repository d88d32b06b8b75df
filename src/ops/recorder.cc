#include "weft/ops/recorder.h"

namespace weft {
namespace {

thread_local Recorder* upper = nullptr;
thread_local Recorder* lower = nullptr;

Value record(Recorder& recorder, uint32_t bit, const Operator& op, Args args) {
  Value result;
  {
    MaskScope mask(layer::below(bit));
    result = dispatch::redispatch(op, args);
  }
  recorder.calls.push_back({&op, {args.begin(), args.end()}, result});
  return result;
}

}  // namespace

std::vector<std::string> Recorder::names() const {
  std::vector<std::string> all;
  for (const RecordedCall& call : calls) all.emplace_back(call.op->name());
  return all;
}

RecorderScope::RecorderScope(Recorder& recorder, Recorder::Position position)
    : slot_(position == Recorder::Position::kUpper ? &upper : &lower),
      outer_(*slot_),
      bit_(position == Recorder::Position::kUpper ? layer::kRecorderUpper : layer::kRecorderLower) {
  *slot_ = &recorder;
  layer_state().active |= bit_;
}

RecorderScope::~RecorderScope() {
  *slot_ = outer_;
  if (!outer_) layer_state().active &= ~bit_;
}

Value layers::recorder_upper(const Operator& op, Args args) {
  return record(*upper, layer::kRecorderUpper, op, args);
}
Value layers::recorder_lower(const Operator& op, Args args) {
  return record(*lower, layer::kRecorderLower, op, args);
}

}  // namespace weft
