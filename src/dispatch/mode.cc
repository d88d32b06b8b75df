#include "weft/dispatch/mode.h"

namespace weft {
namespace {

thread_local ModeScope* innermost_mode = nullptr;

void show_active(ModeScope* scope) {
  innermost_mode = scope;
  uint32_t& active = layer_state().active;
  active = scope ? active | layer::kModes : active & ~layer::kModes;
}

// Makes `scope` the innermost mode for a while.
class Innermost {
 public:
  explicit Innermost(ModeScope* scope) : saved_(innermost_mode) { show_active(scope); }
  ~Innermost() { show_active(saved_); }

 private:
  ModeScope* saved_;
};

}  // namespace

ModeScope::ModeScope(Mode& mode) : mode_(mode), outer_(innermost_mode) { show_active(this); }
ModeScope::~ModeScope() { show_active(outer_); }

Value layers::modes(const Operator& op, Args args) {
  ModeScope* current = innermost_mode;
  Innermost without(current->outer_);
  MaskScope mask(layer::at_and_below(layer::kModes));
  return current->mode_.handle(op, args);
}

}  // namespace weft
