#pragma once

#include <exception>

#include "weft/base/function_ref.h"
#include "weft/core/value.h"

namespace weft {

// What a forked function gave, as a Value: a result, or the error that it ended with.
class FutureObject final : public ValueObject {
 public:
  // Runs f on this thread, and keeps what comes of it.
  explicit FutureObject(FunctionRef<Value()> f);

  // The result; throws the error, every time.
  const Value& wait() const;
  std::string type_name() const override { return "Future"; }
  uint32_t nesting() const noexcept override { return nesting_; }

 private:
  Value result_;
  std::exception_ptr error_;
  uint32_t nesting_ = 0;
};

}  // namespace weft
