#include "weft/core/future.h"

namespace weft {

FutureObject::FutureObject(FunctionRef<Value()> f) {
  try {
    Value result = f();
    nesting_ = nesting_around({&result, 1});
    result_ = std::move(result);
  } catch (...) {
    error_ = std::current_exception();
  }
}

const Value& FutureObject::wait() const {
  if (error_) std::rethrow_exception(error_);
  return result_;
}

}  // namespace weft
