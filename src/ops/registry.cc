#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "ops/table.h"
#include "ops/user_operators.h"
#include "weft/base/error.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

std::string_view name_in(const char* text) {
  std::string_view schema(text);
  return schema.substr(0, schema.find('('));
}

struct Registry {
  std::unordered_map<std::string_view, const Operator*> by_name;
  std::unordered_map<std::string_view, std::vector<const Operator*>> by_base;  // "aten::add"
  std::vector<const Operator*> in_order;
  std::mutex mutex;

  Registry() {
    for (size_t i = 0; i < detail::operator_count; ++i) add(detail::operator_table[i]);
    for (const Operator& op : detail::operators_over_functions())
      by_name.emplace(name_in(op.schema_text()), &op);
    for (const Operator& op : detail::nested_operators()) by_name.emplace(name_in(op.schema_text()), &op);
  }
  void add(const Operator& op) {
    std::string_view name = name_in(op.schema_text());
    by_name.emplace(name, &op);
    by_base[name.substr(0, name.find('.'))].push_back(&op);
    in_order.push_back(&op);
  }
};

Registry& registry() {
  static Registry* instance =
      new Registry;  // operators outlive every static destructor that may still call one
  return *instance;
}

// Levenshtein distance, for suggestions.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Operator::name_of(Relative which) const {
  const std::string_view own = name(), base = own.substr(0, own.find('.'));
  // "Scalar_mode" is the overload for numbers of "Tensor_mode".
  auto swapped = [&](std::string_view from, std::string_view to) {
    std::string_view overload = own.size() > base.size() ? own.substr(base.size() + 1) : "";
    std::string_view rest = overload.starts_with(from) ? overload.substr(from.size()) : "";
    return fmt::format("{}.{}{}", base, to, rest);
  };
  switch (which) {
    case Relative::kFunctional:
      return std::string(name_in(def_->schema));
    case Relative::kForTensors:
      return swapped("Scalar", "Tensor");
    case Relative::kForNumbers:
      return swapped("Tensor", "Scalar");
    case Relative::kWithWrittenResults:
      return fmt::format("{}_functional", own);
  }
  __builtin_unreachable();
}

const Operator* Operator::find_relative(Relative which) const {
  const std::string wanted = name_of(which);
  Registry& r = registry();
  // Found and kept under one lock: an operator that is registered meanwhile is not missed.
  std::lock_guard lock(r.mutex);
  auto found = r.by_name.find(wanted);
  // An operator may have no name for its overload on tensors: floor_divide beside floor_divide.Scalar.
  if (found == r.by_name.end() && which == Relative::kForTensors)
    found = r.by_name.find(std::string_view(wanted).substr(0, wanted.find('.')));
  const Operator* relative = found == r.by_name.end() ? this : found->second;
  relatives_[static_cast<size_t>(which)].store(relative, std::memory_order_release);
  return relative == this ? nullptr : relative;
}

// What was looked for in vain may be there now.
struct detail::RelativesAccess {
  static void forget_missing(const Operator& op) {
    for (auto& relative : op.relatives_) {
      const Operator* none = &op;
      relative.compare_exchange_strong(none, nullptr, std::memory_order_acq_rel);
    }
  }
};

const Operator* find_operator(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? nullptr : found->second;
}

const Operator& operator_named(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const Operator* op : all_operators()) near.emplace_back(distance(name, op->name()), op->name());
  std::sort(near.begin(), near.end());
  std::string hint;
  for (size_t i = 0; i < near.size() && i < 3; ++i) hint += (i ? ", " : "") + std::string(near[i].second);
  fail("no operator '{}'; near names: {}", name, hint);
}

std::vector<const Operator*> all_operators() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return r.in_order;
}

std::vector<const Operator*> overloads_of(std::string_view base) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto found = r.by_base.find(base);
  return found == r.by_base.end() ? std::vector<const Operator*>() : found->second;
}

void detail::register_operator(const Operator& op) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  require(!r.by_name.contains(name_in(op.schema_text())), "operator {} is defined already",
          name_in(op.schema_text()));
  r.add(op);
  for (const Operator* other : r.in_order) RelativesAccess::forget_missing(*other);
}

}  // namespace weft
