#pragma once

#include <unordered_map>

#include "weft/core/value.h"
#include "weft/sym/shape_env.h"

namespace weft::aot {

// What symbolic inputs must be: the sizes that share a symbol are equal, symbols are in their ranges, and the
// guards hold that the capture relied on.
class SymbolChecks {
 public:
  // `likes` are the inputs as they were captured: tensors of symbolic sizes, symbolic integers.
  explicit SymbolChecks(const ValueList& likes);
  bool is_empty() const { return !env_; }
  // An error that names the input, or the guard with the line that asked for it.
  void check(Args inputs, const std::string& graph) const;

 private:
  struct Read {
    size_t input;
    int64_t dim;  // -1: the integer itself
    const sym::Expr* expr;
    bool is_symbol;
  };
  using FirstReads =
      std::unordered_map<const sym::Expr*, const Read*>;  // by symbol: where its value comes from
  static int64_t value_of(const Read& read, Args inputs);
  static std::string text_of(const Read& read);
  [[noreturn]] void refuse(const sym::Guard& guard, const FirstReads& first, Args inputs,
                           const std::string& graph) const;

  Ref<ShapeEnv> env_;
  std::vector<Read> reads_;
};

}  // namespace weft::aot
