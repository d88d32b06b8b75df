#include "weft/ops/operator_value.h"

#include <fmt/format.h>

namespace weft {
namespace {

struct OperatorObject final : ValueObject {
  explicit OperatorObject(const Operator& own) : op(own) {}
  std::string type_name() const override { return "operator"; }
  std::string to_string() const override {
    const Schema& schema = op.schema();
    return fmt::format("{}.{}.{}", schema.ns, schema.name,
                       schema.overload.empty() ? "default" : schema.overload);
  }
  bool equals(const ValueObject& other) const override {
    auto* same = dynamic_cast<const OperatorObject*>(&other);
    return same && &same->op == &op;
  }

  const Operator& op;
};

}  // namespace

Value operator_value(const Operator& op) { return Value(Ref<ValueObject>(make_ref<OperatorObject>(op))); }

const Operator* operator_in(const Value& value) {
  auto* object = value.object_as<OperatorObject>();
  return object ? &object->op : nullptr;
}

}  // namespace weft
