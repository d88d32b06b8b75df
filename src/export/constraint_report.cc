#include "export/constraint_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "export/size_solver.h"
#include "sym/polynomial.h"
#include "weft/export/errors.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

using sym::Expr;
using sym::ValueRange;
using Size = SizeSolver::Size;

// "3 <= dim <= 6", "dim >= 3"; empty for a declaration without bounds.
std::string range_text(const std::string& name, const ValueRange& range) {
  const bool has_lower = range.lo > 2, has_upper = range.hi != ValueRange::kInf;
  if (has_lower && has_upper)
    return fmt::format(" in the specified range {} <= {} <= {}", range.lo, name, range.hi);
  if (has_lower) return fmt::format(" in the specified range {} >= {}", name, range.lo);
  if (has_upper) return fmt::format(" in the specified range {} <= {}", name, range.hi);
  return "";
}

// Declarations that would do, by name.
class Fixes {
 public:
  // What the example is says which lower bounds go without saying.
  void bounds(const std::string& name, const ValueRange& range, int64_t example) {
    const int64_t least = example < 2 ? 1 : 3;
    python_.emplace(name, fmt::format("{} = {}", name, dim_text(name, range, least)));
    std::string bounds;
    if (range.lo >= least) bounds += fmt::format(".min = {}", range.lo);
    if (range.hi != ValueRange::kInf)
      bounds += fmt::format("{}.max = {}", bounds.empty() ? "" : ", ", range.hi);
    roots_.push_back(bounds.empty() ? fmt::format("auto {} = Dim(\"{}\");", name, name)
                                    : fmt::format("auto {} = Dim(\"{}\", {{{}}});", name, name, bounds));
  }
  void relation(const std::string& name, int64_t scale, const std::string& other, int64_t offset) {
    python_.emplace(name, fmt::format("{} = {}", name, linear_text(scale, other, offset)));
    std::string text = linear_text(scale, other, offset);
    if (const size_t star = text.find('*'); star != text.npos) text.replace(star, 1, " * ");
    derived_.push_back(fmt::format("auto {} = {};", name, text));
  }
  void constant(const std::string& name, int64_t value) {
    python_.emplace(name, fmt::format("{} = {}", name, value));
    constants_.push_back(fmt::format("const int64_t {} = {};", name, value));
  }

  // The lines of Python, which PyTorch's users know, then C++ to paste: what others need comes first.
  std::string to_string() const {
    std::string text = "\nSuggested fixes:";
    for (const auto& [name, line] : python_) text += "\n  " + line;
    text += "\nIn C++:";
    for (const auto* lines : {&roots_, &derived_, &constants_})
      for (const std::string& line : *lines) text += "\n  " + line;
    return text;
  }

 private:
  std::map<std::string, std::string> python_;
  std::vector<std::string> roots_, derived_, constants_;
};

class Report {
 public:
  Report(ShapeEnv& env, const DeclaredSizes& declared, std::vector<Size> sizes,
         std::vector<const sym::Guard*> guards)
      : env_(env), declared_(declared), sizes_(std::move(sizes)), guards_(std::move(guards)) {}

  void check() {
    for (const Size& size : sizes_) {
      if (!is_violated(size)) continue;
      describe(size);
    }
    if (special_.empty() && lines_.empty()) return;
    for (const Size& size : sizes_)
      if (is_violated(size)) suggest(size);
    const bool is_specialised = !special_names_.empty();
    std::string text = fmt::format(
        "{} ({})!", is_specialised ? "Specializations unexpectedly required" : "Constraints violated",
        fmt::join(is_specialised ? special_names_ : names_, ", "));
    for (const std::string& line : special_) text += "\n" + line;
    for (const std::string& line : lines_) text += "\n" + line;
    throw ConstraintViolationError(text + fixes_.to_string());
  }

 private:
  // Sizes with hints are what the program makes of them, but for a dynamic one that must be a constant.
  bool is_violated(const Size& size) const {
    if (!size.is_changed()) return false;
    if (declared_.root_of(size.symbol)) return true;
    const DeclaredSizes::Use* use = declared_.hinted(size.symbol);
    return use && *use->spec.hint() == DimHint::kDynamic && size.constant;
  }

  const Size* size_of(const Expr* symbol) const {
    for (const Size& size : sizes_)
      if (size.symbol == symbol) return &size;
    return nullptr;
  }
  int64_t example_of(const Expr* symbol) const { return std::get<int64_t>(*env_.hint(symbol)); }
  std::string name_of(const Expr* symbol) const {
    if (const DeclaredSizes::Root* root = declared_.root_of(symbol)) return root->dim.name();
    if (const DeclaredSizes::Use* use = declared_.hinted(symbol)) return use->source.guard_text();
    return symbol->to_string();
  }
  // "dim = L['x'].size()[0]", by the first size that it is.
  std::string place_of(const Expr* symbol) const {
    const DeclaredSizes::Root* root = declared_.root_of(symbol);
    if (!root || root->uses.empty()) return name_of(symbol);
    const DeclaredSizes::Use* use = &declared_.uses()[root->uses[0]];
    for (const size_t i : root->uses)
      if (!declared_.uses()[i].spec.dim()->is_derived()) {
        use = &declared_.uses()[i];
        break;
      }
    return fmt::format("{} = {}", use->spec.dim()->name(), use->source.guard_text());
  }
  bool has_derived_use(const Expr* symbol) const {
    const DeclaredSizes::Root* root = declared_.root_of(symbol);
    return root && std::ranges::any_of(root->uses, [&](size_t use) {
             return declared_.uses()[use].spec.dim()->is_derived();
           });
  }

  // The conditions behind a change, each with the line that asked.
  std::string asked(const Size& size) const {
    std::string text;
    std::set<size_t> seen;
    for (const SizeSolver::Cause& cause : size.causes) {
      if (!seen.insert(cause.condition).second) continue;
      const sym::Guard& guard = *guards_[cause.condition];
      text += fmt::format("\n      {} is needed at {}", sym::source_text(guard.condition),
                          guard.where.to_string());
    }
    return text;
  }

  void describe(const Size& size) {
    const std::string name = name_of(size.symbol);
    names_.push_back(name);
    if (size.constant && (size.is_forced() || has_derived_use(size.symbol))) return describe_special(size);
    if (size.constant) {
      lines_.push_back(fmt::format(
          "  - Not all values of {}{} are valid because {} was inferred to be a constant ({}).{}",
          place_of(size.symbol), range_text(name, size.declared), name, *size.constant, asked(size)));
    } else if (size.other) {
      const bool is_equal = size.scale == 1 && size.offset == 0 && !size.is_of_step;
      const std::string other = (size.is_of_step ? "_" : "") + name_of(size.other);
      lines_.push_back(
          is_equal
              ? fmt::format("  - The values of {} and {} must always be equal.{}", place_of(size.symbol),
                            place_of(size.other), asked(size))
              : fmt::format("  - The values of {} must always be related to the values of {} by {} = {}.{}",
                            place_of(size.symbol), place_of(size.other), name,
                            linear_text(size.scale, other, size.offset), asked(size)));
    } else if (!size.relation.empty()) {
      lines_.push_back(fmt::format("  - The values of {} must always be {}.{}", place_of(size.symbol),
                                   size.relation, asked(size)));
    } else {
      std::set<size_t> seen;
      for (const SizeSolver::Cause& cause : size.causes)
        if (seen.insert(cause.condition).second) {
          const sym::Guard& guard = *guards_[cause.condition];
          lines_.push_back(fmt::format(
              "  - Not all values of {}{} satisfy the generated guard {}.\n      It is needed at {}",
              place_of(size.symbol), range_text(name, size.declared), sym::source_text(guard.condition),
              guard.where.to_string()));
        }
    }
  }

  void describe_special(const Size& size) {
    special_names_.push_back(name_of(size.symbol));
    const DeclaredSizes::Root* root = declared_.root_of(size.symbol);
    std::vector<std::string> places;
    if (root)
      for (const size_t i : root->uses) {
        const DeclaredSizes::Use& use = declared_.uses()[i];
        const Dim& dim = *use.spec.dim();
        if (dim.is_derived() == has_derived_use(size.symbol))
          places.push_back(fmt::format("{} = {} must be specialized to {}", dim.name(),
                                       use.source.guard_text(), dim.scale() * *size.constant + dim.offset()));
      }
    else places.push_back(fmt::format("{} must be specialized to {}", name_of(size.symbol), *size.constant));
    for (const std::string& place : places)
      special_.push_back(
          fmt::format("  - {} because the guards generated for it are too complex.{}", place, asked(size)));
  }

  void suggest(const Size& size) {
    if (!declared_.root_of(size.symbol)) return;
    const std::string name = name_of(size.symbol);
    if (size.constant) return fixes_.constant(name, *size.constant);
    if (size.is_of_step) return fixes_.relation(name, size.scale, "_" + name_of(size.other), size.offset);
    if (size.other) {
      const Size* other = size_of(size.other);
      if (other && other->congruence && !other->other && declared_.root_of(size.other))
        return fixes_.relation(name, size.scale * other->congruence->modulus, "_" + name_of(size.other),
                               size.scale * other->congruence->remainder + size.offset);
      return fixes_.relation(name, size.scale, name_of(size.other), size.offset);
    }
    if (size.congruence) {
      const auto [modulus, remainder] = *size.congruence;
      const std::string fresh = "_" + name;
      ValueRange range = size.range;
      if (range.lo != ValueRange::kNegInf) range.lo = -sym::floor_divide(-(range.lo - remainder), modulus);
      if (range.hi != ValueRange::kInf) range.hi = sym::floor_divide(range.hi - remainder, modulus);
      fixes_.bounds(fresh, range, (example_of(size.symbol) - remainder) / modulus);
      return fixes_.relation(name, modulus, fresh, remainder);
    }
    fixes_.bounds(name, size.range, example_of(size.symbol));
  }

  ShapeEnv& env_;
  const DeclaredSizes& declared_;
  std::vector<Size> sizes_;
  std::vector<const sym::Guard*> guards_;
  std::vector<std::string> special_, lines_, special_names_, names_;
  Fixes fixes_;
};

}  // namespace

void check_declared_sizes(ShapeEnv& env, const DeclaredSizes& sizes) {
  if (env.guards().empty()) return;
  std::vector<SizeSolver::Unknown> unknowns;
  std::vector<const Expr*> conditions;
  std::vector<const sym::Guard*> guards;
  for (const sym::Symbol& symbol : env.symbols()) {
    if (const DeclaredSizes::Root* root = sizes.root_of(symbol.expr))
      unknowns.push_back(
          {symbol.expr, {symbol.declared.lo, std::max(root->dim.range().hi, symbol.declared.lo)}});
    else if (sizes.hinted(symbol.expr)) unknowns.push_back({symbol.expr, symbol.declared});
  }
  for (const sym::Guard& guard : env.guards()) {
    conditions.push_back(guard.condition);
    guards.push_back(&guard);
  }
  SizeSolver solver(env, unknowns, conditions);
  Report(env, sizes, solver.solve(), std::move(guards)).check();
}

}  // namespace weft
