#pragma once

#include "weft/base/error.h"
#include "weft/nn/deep_copy.h"

namespace weft {

// Stands for a child whose code is gone: calling it is an error with this text. Since it has no code, nothing
// in it keeps tensors of its own.
struct Uncallable final : nn::ModuleCallable {
  explicit Uncallable(std::string text) : message(std::move(text)) {}
  using Callable::call;
  Value call(Args) override { fail("{}", message); }
  std::string type_name() const override { return "Uncallable"; }
  Ref<Callable> copy() const override { return make_ref<Uncallable>(message); }
  bool is_code() const override { return false; }
  std::string message;
};

inline bool is_uncallable(const Callable& callable) {
  return dynamic_cast<const Uncallable*>(&callable) != nullptr;
}

}  // namespace weft
