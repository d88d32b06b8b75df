#pragma once

#include <memory>
#include <string>

#include "weft/base/stack_trace.h"
#include "weft/dispatch/module_stack.h"

namespace weft {

// Where a call comes from, for whoever records it, where the live C++ stack does not tell: the node of a
// graph that is run again, or the forward call whose gradient is computed.
struct Origin {
  std::shared_ptr<const StackTrace> trace;  // where the program made the call; null: nobody noted
  std::string source;                       // the same as text, where that is all there is
  ModuleStack modules;                      // the calls of modules around it
  std::string function;                     // what the program called, "cos_1;method_descriptor.cos"; or empty
  std::string node;                         // the name of the node it was; empty: none
  bool is_backward = false;                 // it computes the gradient of that

  // Of the calls that this thread makes now; null: what the stack says.
  static const Origin* current() noexcept;
  // Whether somebody on this thread wants to know. Nobody sets an origin otherwise.
  static bool is_wanted() noexcept;
};
using OriginRef = std::unique_ptr<const Origin>;

namespace detail {
extern constinit thread_local const Origin* current_origin;
extern constinit thread_local int origin_watchers;
}  // namespace detail

inline const Origin* Origin::current() noexcept { return detail::current_origin; }
inline bool Origin::is_wanted() noexcept { return detail::origin_watchers > 0; }

// The origin of the calls in a scope; null leaves the one that is.
class OriginScope {
 public:
  explicit OriginScope(const Origin* origin) noexcept : outer_(detail::current_origin) {
    if (origin) detail::current_origin = origin;
  }
  ~OriginScope() { detail::current_origin = outer_; }
  OriginScope(const OriginScope&) = delete;

 private:
  const Origin* outer_;
};

// While it lives, somebody on this thread wants to know origins.
class OriginWatch {
 public:
  OriginWatch() noexcept { ++detail::origin_watchers; }
  ~OriginWatch() { --detail::origin_watchers; }
  OriginWatch(const OriginWatch&) = delete;
};

}  // namespace weft
