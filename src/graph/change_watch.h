#pragma once

#include "weft/nn/module.h"

namespace weft {

// Tells whether something that a name below a module leads to was replaced since the last question, by
// whoever holds it: what was made of the module is out of date then.
class ChangeWatch {
 public:
  // Whether this is the module of the last question, and unchanged. False at first.
  bool is_unchanged(const nn::Module& module) {
    const uint64_t now = nn::latest_change();
    const bool is_same = owner_.lock() == module.state();
    if (is_same && now == asked_) return true;  // nothing has changed anywhere
    asked_ = now;
    const uint64_t newest = newest_below(*module.state());
    if (is_same && newest == newest_) return true;
    owner_ = module.state();
    newest_ = newest;
    return false;
  }

 private:
  static uint64_t newest_below(const nn::ModuleState& state) {
    uint64_t newest = state.last_change;
    for (const nn::ModuleState::Child& child : state.children)
      newest = std::max(newest, newest_below(*child.state));
    return newest;
  }

  std::weak_ptr<const nn::ModuleState> owner_;
  uint64_t asked_ = 0, newest_ = 0;
};

}  // namespace weft
