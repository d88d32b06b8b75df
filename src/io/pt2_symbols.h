#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/pt2_schema.h"
#include "weft/core/tensor_impl.h"
#include "weft/export/exported_program.h"

namespace weft::pt2 {

// The symbolic numbers of a program: expressions in SymPy's words, over symbols of one environment.
class Symbols {
 public:
  // `ranges` is the program's range_constraints.
  explicit Symbols(const Json& ranges);

  // Where the symbols that an input's sizes introduce come from; for the sizes that are read next.
  void set_source(const sym::Source* source) { source_ = source; }
  SymInt int_of(const Json& json, std::string_view what);
  SymBool bool_of(const Json& json, std::string_view what);
  SymFloat float_of(const Json& json, std::string_view what);
  SymInts ints_of(const Json& list, std::string_view what, bool are_sizes);
  // Of all symbols and expressions that the program constrains; after everything else was read.
  std::vector<RangeConstraint> constraints();
  // Null while there are no symbols.
  Ref<ShapeEnv> env() const { return env_->symbols().empty() ? nullptr : env_; }

 private:
  const sym::Expr* expr_of(const Json& json, std::string_view what);
  const sym::Expr* symbol_named(const std::string& name, bool is_integer);

  Ref<ShapeEnv> env_;
  std::vector<std::pair<std::string, sym::ValueRange>> ranges_;  // in the order of the file
  std::unordered_map<std::string, const sym::Expr*> known_;
  const sym::Source* source_ = nullptr;
};

Json json_of(const SymInt& value);
Json json_of(const SymBool& value);
Json json_of(const SymFloat& value);

}  // namespace weft::pt2
