#pragma once

#include <string>
#include <string_view>

#include "weft/base/function_ref.h"
#include "weft/sym/shape_env.h"

namespace weft::sym {

// What a text says about a symbol: all of it in the constructor spelling, in the other one its name.
struct SymbolText {
  std::string name;
  bool is_positive = false;
  bool is_integer = true;
};
// The expression for a symbol of a text; null for one that is not known, which is an error.
using SymbolLookup = FunctionRef<const Expr*(const SymbolText&)>;

// The expression of a text in either of SymPy's spellings, in normal form: "2*s0 + 1", "Ne(Mod(s0, 20), 0)",
// and "Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))". Symbols are those of the environment by
// their names, unless `lookup` says which. The inverse of `Expr::to_string` and `srepr`. Bad text is an error
// that names the offset, as is text nested deeper than kMaxParseDepth.
inline constexpr int kMaxParseDepth = 400;
const Expr* parse(ShapeEnv& env, std::string_view text);
const Expr* parse(ShapeEnv& env, std::string_view text, SymbolLookup lookup);

// In SymPy's constructor spelling, as `.pt2` files have it.
std::string srepr(const Expr* expr);
// With the smaller side first, as PyTorch words assertions: "2 < u0", "u0 <= 2*s0".
std::string canonical_text(const Expr* expr);
// In terms of the sources of the symbols, as PyTorch prints guards:
// "L['x'].size()[0]*L['y'].size()[1]". A symbol that is no argument's keeps its name.
std::string source_text(const Expr* expr);

}  // namespace weft::sym
