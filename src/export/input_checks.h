#pragma once

#include <memory>
#include <string>
#include <vector>

#include "export/guard_expr.h"
#include "weft/export/exported_program.h"

namespace weft {

// What the inputs of a program must be, and how messages call them.
class InputChecks {
 public:
  explicit InputChecks(const ExportedProgram& program);

  // An AssertionError for the first check that fails: types and sizes with their ranges, input by input, then
  // guards. What is symbolic, as in a capture, is taken as it is.
  void check(Args leaves) const;
  // Guards whose text is no condition that can be read; they are not checked.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  struct Leaf {
    std::string path;  // "*args[0]['a']": where the caller put it
    std::string name;  // "x['a']": as guards call it
    bool is_constant = false;
    Value expected = {};
    // How each size of a tensor is called.
    struct Place {
      std::string path, name;
    };
    std::vector<Place> sizes = {};
  };
  struct Sizes;
  void add_leaves(const TreeSpec& spec, const std::string& path, const std::string& name);
  void check_constant(const Leaf& leaf, const Value& value) const;
  void check_tensor(const Leaf& leaf, const Value& value, Sizes& sizes) const;
  void check_size(const std::string& path, const std::string& name, const SymInt& expected, const SymInt& got,
                  Sizes& sizes) const;
  bool check_derived(const std::string& path, const std::string& name, const sym::Expr* expr, int64_t got,
                     Sizes& sizes) const;
  bool solve_derived(const std::string& path, const std::string& name, const sym::Expr* expr, int64_t got,
                     Sizes& sizes) const;
  std::optional<int64_t> value_of(const sym::Expr* expr, const Sizes& sizes,
                                  const sym::Expr* missing = nullptr, int64_t value = 0) const;
  std::optional<std::string> failed_guard(const GuardExpr& guard, Args leaves) const;
  std::optional<size_t> leaf_of(const GuardExpr::Reading& reading) const;

  Ref<ShapeEnv> env_;
  std::vector<Leaf> leaves_;
  std::vector<RangeConstraint> ranges_;
  std::vector<GuardExpr> guards_;
  std::vector<std::string> unreadable_;
};

}  // namespace weft
