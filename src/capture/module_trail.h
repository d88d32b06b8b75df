#pragma once

#include "weft/dispatch/module_stack.h"

namespace weft {

// The modules whose calls are running, for a capture that notes them.
class ModuleTrail {
 public:
  const ModuleStack& modules() const { return modules_; }

  // While it lives, this call is running.
  class Call {
   public:
    Call(ModuleTrail& trail, const std::string& path, const std::string& class_name)
        : trail_(trail), outer_(trail.modules_) {
      trail.modules_ = outer_.with({path, class_name, trail.next_call_++});
    }
    ~Call() { trail_.modules_ = std::move(outer_); }
    Call(const Call&) = delete;

   private:
    ModuleTrail& trail_;
    ModuleStack outer_;
  };

 private:
  ModuleStack modules_;
  int64_t next_call_ = 0;
};

}  // namespace weft
