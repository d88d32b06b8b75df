#include "export/input_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "weft/base/error.h"

namespace weft {
namespace {

// One message has both of PyTorch's wordings: that of exported programs, and that of their guards.
[[noreturn]] void refuse(const std::string& expectation, const std::string& guard) {
  throw AssertionError(fmt::format("{}\nGuard failed: {}", expectation, guard));
}

std::string literal(const Value& value) { return value.to_string(); }
// As Python's str: a string without its quotes, where it cannot be taken for something else.
std::string plain_text(const Value& value, const Value& other) {
  return value.is_string() && other.is_string() ? std::string(value.to_string_view()) : literal(value);
}

bool is_same_constant(const Value& expected, const Value& got) {
  if (expected.kind() != got.kind()) return false;
  if (expected.kind() == Value::Kind::kDouble && std::isnan(expected.to_double()))
    return std::isnan(got.to_double());
  return expected == got;
}

// Sizes up to here are dynamic for PyTorch whatever the range says: 0 and 1 may be given at run time.
constexpr int64_t kAlwaysAllowed = 2;

}  // namespace

// What sizes the leaves so far have.
struct InputChecks::Sizes {
  sym::Bindings symbols;
  std::unordered_map<const sym::Expr*, std::pair<const std::string*, int64_t>> sources;
  struct Derived {
    std::string path, name;
    const sym::Expr* expr;
    int64_t got;
  };
  std::vector<Derived> derived;  // of expressions that are more than a symbol
  // The first of them that differs from what the symbols say. A guard of the program may say it in its words.
  struct Refusal {
    std::string name, expectation, guard;
  };
  std::optional<Refusal> refusal;
};

InputChecks::InputChecks(const ExportedProgram& program)
    : env_(program.shape_env()), ranges_(program.range_constraints()) {
  const ProgramCall& call = program.call();
  size_t argument = 0;
  const std::span<const TreeSpec> groups = call.arguments.children();
  for (size_t i = 0; i < groups[0].children().size(); ++i)
    add_leaves(groups[0].children()[i], fmt::format("*args[{}]", i), call.names[argument++]);
  for (size_t i = 0; i < groups[1].children().size(); ++i) {
    const std::string& name = call.names[argument++];
    add_leaves(groups[1].children()[i], name, name);
  }
  const std::vector<Node*> placeholders = program.graph().placeholders();
  size_t leaf = 0;
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec& spec = program.inputs()[i];
    if (spec.kind != InputSpec::Kind::kUserInput && spec.kind != InputSpec::Kind::kConstantInput) continue;
    Leaf& own = leaves_[leaf++];
    own.is_constant = spec.kind == InputSpec::Kind::kConstantInput;
    const NodeMeta* meta = placeholders[i]->meta_or_null();
    own.expected = own.is_constant ? spec.constant : meta ? meta->value : Value();
    if (!own.expected.is_tensor()) continue;
    for (int64_t d = 0; d < own.expected.tensor_impl()->dim(); ++d)
      own.sizes.push_back(
          {fmt::format("{}.shape[{}]", own.path, d), fmt::format("{}.size()[{}]", own.name, d)});
  }
  for (const std::string& text : program.guards()) {
    std::optional<GuardExpr> expr = GuardExpr::parse(text);
    if (!expr) {
      unreadable_.push_back(text);
      continue;
    }
    guards_.push_back(std::move(*expr));
  }
}

void InputChecks::add_leaves(const TreeSpec& spec, const std::string& path, const std::string& name) {
  if (spec.is_leaf()) {
    leaves_.push_back({.path = path, .name = name});
    return;
  }
  // As deep as values are nested, which is bounded.
  for (size_t i = 0; i < spec.children().size(); ++i) {
    const std::string key = to_string(KeyPath{spec.child_key(i)});
    add_leaves(spec.children()[i], path + key, name + key);
  }
}

void InputChecks::check_constant(const Leaf& leaf, const Value& value) const {
  if (is_same_constant(leaf.expected, value)) return;
  refuse(fmt::format("Expected input at {} to be equal to {}, but got {}", leaf.path,
                     plain_text(leaf.expected, value), plain_text(value, leaf.expected)),
         fmt::format("{} == {}", leaf.name, literal(leaf.expected)));
}

void InputChecks::check_size(const std::string& path, const std::string& name, const SymInt& expected,
                             const SymInt& got, Sizes& sizes) const {
  const std::optional<int64_t> actual = got.maybe_plain();
  if (!actual) return;
  if (!expected.is_symbolic()) {
    if (*actual == expected.plain()) return;
    refuse(
        fmt::format("Expected input at {} to be equal to {}, but got {}; if it is to be dynamic, export the "
                    "program again and say so in its dynamic shapes",
                    path, expected.plain(), *actual),
        fmt::format("{} == {}", name, expected.plain()));
  }
  const sym::Expr* const expr = expected.expr();
  auto [source, is_new] = sizes.sources.try_emplace(expr, &name, *actual);
  if (!is_new) {
    if (*actual == source->second.second) return;
    refuse(fmt::format("Expected input at {} to be equal to {}, but got {}", path, source->second.second,
                       *actual),
           fmt::format("{} == {}", name, *source->second.first));
  }
  const bool is_told = !expr->is_symbol() && check_derived(path, name, expr, *actual, sizes);
  if (sizes.refusal) return;
  for (const RangeConstraint& constraint : ranges_) {
    if (constraint.expr != expr) continue;
    const auto [lo, hi] = constraint.range;
    if (lo > kAlwaysAllowed && *actual < lo)
      refuse(fmt::format("Expected input at {} to be >= {}, but got {}", path, lo, *actual),
             fmt::format("{} >= {}", name, lo));
    if (*actual > hi)
      refuse(fmt::format("Expected input at {} to be <= {}, but got {}", path, hi, *actual),
             fmt::format("{} <= {}", name, hi));
  }
  if (expr->is_symbol()) sizes.symbols.emplace(expr, *actual);
  else if (!is_told && !solve_derived(path, name, expr, *actual, sizes))
    sizes.derived.push_back({path, name, expr, *actual});
}

// What `missing` makes of an expression of sizes; nothing where it has no value.
std::optional<int64_t> InputChecks::value_of(const sym::Expr* expr, const Sizes& sizes,
                                             const sym::Expr* missing, int64_t value) const {
  sym::Bindings bindings = sizes.symbols;
  if (missing) bindings.emplace(missing, value);
  const std::optional<sym::Number> number = env_->evaluate(expr, bindings);
  const int64_t* integer = number ? std::get_if<int64_t>(&*number) : nullptr;
  return integer ? std::optional<int64_t>(*integer) : std::nullopt;
}

// A size that follows from others is compared with what they say; false where one of them is missing.
bool InputChecks::check_derived(const std::string& path, const std::string& name, const sym::Expr* expr,
                                int64_t got, Sizes& sizes) const {
  for (const sym::Symbol* symbol : env_->free_symbols(expr))
    if (!sizes.symbols.contains(symbol->expr)) return false;
  const std::optional<int64_t> wanted = value_of(expr, sizes);
  if (wanted && *wanted != got && !sizes.refusal)
    sizes.refusal = {name,
                     fmt::format("Expected input at {} to be equal to {}, but got {}", path, *wanted, got),
                     fmt::format("{} == {}", name, expr->to_string())};
  return true;
}

// Or else it tells the one that is missing; false where it does not.
bool InputChecks::solve_derived(const std::string& path, const std::string& name, const sym::Expr* expr,
                                int64_t got, Sizes& sizes) const {
  const sym::Symbol* missing = nullptr;
  for (const sym::Symbol* symbol : env_->free_symbols(expr)) {
    if (sizes.symbols.contains(symbol->expr)) continue;
    if (missing) return false;
    missing = symbol;
  }
  if (!missing) return false;
  const std::optional<int64_t> at_0 = value_of(expr, sizes, missing->expr, 0),
                               at_1 = value_of(expr, sizes, missing->expr, 1),
                               at_2 = value_of(expr, sizes, missing->expr, 2);
  if (!at_0 || !at_1 || !at_2 || *at_2 - *at_1 != *at_1 - *at_0 || *at_1 == *at_0) return false;
  const int64_t scale = *at_1 - *at_0;
  if ((got - *at_0) % scale != 0)
    refuse(fmt::format("Expected input {} = {} to be of the form {}, where {} is an integer", path, got,
                       expr->to_string(), missing->name),
           fmt::format("{} == {}", name, expr->to_string()));
  sizes.symbols.emplace(missing->expr, (got - *at_0) / scale);
  return true;
}

void InputChecks::check_tensor(const Leaf& leaf, const Value& value, Sizes& sizes) const {
  if (!value.is_tensor())
    refuse(fmt::format("Expected input at {} to be a tensor, but got {}", leaf.path, value.kind_name()),
           fmt::format("isinstance({}, torch.Tensor)", leaf.name));
  const TensorImpl &expected = *leaf.expected.tensor_impl(), &got = *value.tensor_impl();
  if (expected.dim() != got.dim())
    refuse(fmt::format("Unexpected number of dimensions in input at {}.shape (expected {}, got {})",
                       leaf.path, describe_sizes(expected.sizes()).str(), describe_sizes(got.sizes()).str()),
           fmt::format("{}.dim() == {}", leaf.name, expected.dim()));
  if (expected.dtype() != got.dtype())
    refuse(fmt::format("Expected input at {} to have dtype {}, but got {}", leaf.path,
                       dtype_name(expected.dtype()), dtype_name(got.dtype())),
           fmt::format("{}.dtype == torch.{}", leaf.name, dtype_name(expected.dtype())));
  for (size_t d = 0; d < expected.sizes().size(); ++d)
    check_size(leaf.sizes[d].path, leaf.sizes[d].name, expected.sizes()[d], got.sizes()[d], sizes);
}

void InputChecks::check(Args leaves) const {
  Sizes sizes;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    if (leaf.is_constant) check_constant(leaf, leaves[i]);
    else if (leaf.expected.is_tensor()) check_tensor(leaf, leaves[i], sizes);
    else if (leaf.expected.is_int()) {
      if (leaves[i].kind() != Value::Kind::kInt && leaves[i].kind() != Value::Kind::kSymInt)
        refuse(fmt::format("Expected input at {} to be an integer, but got {}", leaf.path,
                           leaves[i].kind_name()),
               fmt::format("isinstance({}, int)", leaf.name));
      check_size(leaf.path, leaf.name, leaf.expected.to_sym_int(), leaves[i].to_sym_int(), sizes);
    }
  }
  for (const GuardExpr& guard : guards_) {
    const std::optional<std::string> failed = failed_guard(guard, leaves);
    if (!failed) continue;
    if (sizes.refusal && failed->find(sizes.refusal->name) != failed->npos)
      refuse(sizes.refusal->expectation, *failed);
    throw AssertionError("Guard failed: " + *failed);
  }
  for (const Sizes::Derived& derived : sizes.derived)
    check_derived(derived.path, derived.name, derived.expr, derived.got, sizes);
  if (sizes.refusal) refuse(sizes.refusal->expectation, sizes.refusal->guard);
}

// The root of a reading is an argument of forward; a variadic one is written `args`, and its elements are the
// arguments args_0, args_1, ...; likewise the arguments by name of a `**kwargs`.
std::optional<size_t> InputChecks::leaf_of(const GuardExpr::Reading& reading) const {
  auto joined = [&](std::string root, size_t from) {
    for (size_t i = from; i < reading.steps.size(); ++i) root += reading.steps[i];
    return root;
  };
  std::vector<std::string> candidates = {joined(reading.root, 0)};
  if (!reading.steps.empty()) {
    const std::string& first = reading.steps[0];
    const std::string key = first.substr(1, first.size() - 2);
    if (first.starts_with("['")) candidates.push_back(joined(key.substr(1, key.size() - 2), 1));
    else candidates.push_back(joined(reading.root + "_" + key, 1));
  }
  for (const std::string& candidate : candidates)
    for (size_t i = 0; i < leaves_.size(); ++i)
      if (leaves_[i].name == candidate) return i;
  // The tracer's own name for all leaves.
  if (reading.root == "flat_args" && reading.steps.size() == 1) {
    const size_t index = static_cast<size_t>(std::atoll(reading.steps[0].c_str() + 1));
    if (index < leaves_.size()) return index;
  }
  return std::nullopt;
}

// What it says, with the names of the program's inputs, where it does not hold.
std::optional<std::string> InputChecks::failed_guard(const GuardExpr& guard, Args leaves) const {
  using Property = GuardExpr::Reading::Property;
  auto read = [&](const GuardExpr::Reading& reading) -> std::optional<double> {
    const std::optional<size_t> at = leaf_of(reading);
    if (!at) return std::nullopt;
    const Value& value = leaves[*at];
    if (reading.property == Property::kValue) {
      if (value.is_int() && value.to_sym_int().maybe_plain())
        return static_cast<double>(*value.to_sym_int().maybe_plain());
      return value.kind() == Value::Kind::kDouble ? std::optional<double>(value.to_double()) : std::nullopt;
    }
    if (!value.is_tensor()) return std::nullopt;
    const TensorImpl& tensor = *value.tensor_impl();
    SymInt number = tensor.storage_offset();
    if (reading.property != Property::kOffset) {
      if (reading.dim < 0 || reading.dim >= tensor.dim()) return std::nullopt;
      const auto dim = static_cast<size_t>(reading.dim);
      number = reading.property == Property::kSize ? tensor.sizes()[dim] : tensor.strides()[dim];
    }
    const std::optional<int64_t> plain = number.maybe_plain();
    return plain ? std::optional<double>(static_cast<double>(*plain)) : std::nullopt;
  };
  if (guard.holds(read).value_or(true)) return std::nullopt;
  auto name = [&](const GuardExpr::Reading& reading) {
    const std::optional<size_t> at = leaf_of(reading);
    std::string text = at ? leaves_[*at].name : reading.root;
    if (reading.property == Property::kSize) text += fmt::format(".size()[{}]", reading.dim);
    if (reading.property == Property::kStride) text += fmt::format(".stride()[{}]", reading.dim);
    if (reading.property == Property::kOffset) text += ".storage_offset()";
    return text;
  };
  return guard.to_string(name);
}

}  // namespace weft
