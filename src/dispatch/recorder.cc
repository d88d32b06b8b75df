#include "weft/dispatch/recorder.h"

#include "weft/base/error.h"

namespace weft {
namespace {

thread_local Recorder* upper_recorder = nullptr;
thread_local Recorder* lower_recorder = nullptr;

Value record(Recorder* recorder, uint32_t bit, const Operator& op, Args args) {
  // Values of a recording carry its bit: they lead here even when it is over.
  require(recorder != nullptr, "{}: an argument is a value of a capture that has ended; it has no data",
          op.name());
  return recorder->handle(op, args, [&](Args below) {
    MaskScope mask(layer::below(bit));
    return dispatch::redispatch(op, below);
  });
}

}  // namespace

Recorder* Recorder::current(Position position) noexcept {
  return position == Position::kUpper ? upper_recorder : lower_recorder;
}

RecorderScope::RecorderScope(Recorder& recorder, Recorder::Position position)
    : slot_(position == Recorder::Position::kUpper ? &upper_recorder : &lower_recorder),
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
  return record(upper_recorder, layer::kRecorderUpper, op, args);
}
Value layers::recorder_lower(const Operator& op, Args args) {
  return record(lower_recorder, layer::kRecorderLower, op, args);
}
void layers::note_grad_mode(bool enabled) noexcept {
  if (upper_recorder) upper_recorder->grad_mode_changed(enabled);
}

Value CallList::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  Value result = run(args);
  calls.push_back({&op, {args.begin(), args.end()}, result});
  return result;
}

std::vector<std::string> CallList::names() const {
  std::vector<std::string> all;
  for (const RecordedCall& call : calls) all.emplace_back(call.op->name());
  return all;
}

}  // namespace weft
