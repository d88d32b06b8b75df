#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "ops/table.h"
#include "ops/user_operators.h"
#include "weft/base/error.h"
#include "weft/ops/operator.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

Value value_of(const DefaultValue& value, const Type& type);

Value word_value(const std::string& word) {
  if (word == "contiguous_format") return MemoryFormat::kContiguous;
  if (word == "preserve_format") return MemoryFormat::kPreserve;
  if (word == "Mean") return 1;
  if (word == "Sum") return 2;
  if (word == "long") return kInt64;
  if (word == "float") return kFloat32;
  if (word == "strided") return Layout::kStrided;
  if (word == "cpu") return kCpu;
  fail("no value for the default '{}'", word);
}

Value list_value(const DefaultValue& value, const Type& type) {
  ValueList elements;
  if (value.kind == DefaultValue::Kind::kList) {
    for (const DefaultValue& element : value.elements) elements.push_back(value_of(element, type.element()));
  } else {
    // One number stands for a list of the fixed size.
    elements.assign(static_cast<size_t>(type.list_size().value_or(1)), value_of(value, type.element()));
  }
  return Value::list(std::move(elements));
}

Value value_of(const DefaultValue& value, const Type& type) {
  if (value.is_none()) return Value();
  if (type.is_optional()) return value_of(value, type.element());
  if (type.is_list()) return list_value(value, type);
  switch (value.kind) {
    case DefaultValue::Kind::kBool:
      return value.as_bool;
    case DefaultValue::Kind::kInt:
      if (type.is(Type::Kind::kMemoryFormat)) return MemoryFormat::kContiguous;
      if (type.is(Type::Kind::kScalarType))
        return kInt64;  // PyTorch's number 4, the only one that schemas use
      return type.is(Type::Kind::kFloat) ? Value(value.as_float) : Value(value.as_int);
    case DefaultValue::Kind::kFloat:
      return value.as_float;
    case DefaultValue::Kind::kString:
      return value.as_string;
    default:
      return word_value(value.as_string);
  }
}

uint8_t tensor_kind(const Type& type) {
  const Type& inner = type.is_optional() ? type.element() : type;
  if (inner.kind() == Type::Kind::kTensor) return 1;
  if (!inner.is_list()) return 0;
  const Type& element = inner.element().is_optional() ? inner.element().element() : inner.element();
  return element.kind() == Type::Kind::kTensor ? 2 : 0;
}

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

std::string_view Operator::name() const { return name_in(text_); }

const Operator::Info& Operator::parse() const {
  auto info = std::make_unique<Info>();
  info->schema = parse_schema(text_);
  for (const Argument& argument : info->schema.arguments) {
    bool written = argument.alias && argument.alias->is_write;
    info->is_mutable |= written;
    info->written.push_back(written);
    info->is_tensor.push_back(tensor_kind(argument.type));
    info->defaults.push_back(argument.default_value ? value_of(*argument.default_value, argument.type)
                                                    : Value());
  }
  for (size_t i = 0; i < info->schema.returns.size(); ++i) {
    auto aliased = info->schema.aliased_argument(i);
    info->result_aliases.push_back(aliased ? static_cast<int16_t>(*aliased) : int16_t{-1});
  }
  info->is_view = info->schema.is_view();
  const Info* expected = nullptr;
  const Info* fresh = info.get();
  // Another thread may have parsed it meanwhile; its copy is as good.
  if (info_.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *info.release();
  return *expected;
}

std::string Operator::name_of(Relative which) const {
  const std::string_view own = name(), base = own.substr(0, own.find('.'));
  switch (which) {
    case Relative::kFunctional:
      return std::string(name_in(def_->schema));
    case Relative::kForTensors:
      return fmt::format("{}.Tensor", base);
    case Relative::kForNumbers:
      return fmt::format("{}.Scalar", base);
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
