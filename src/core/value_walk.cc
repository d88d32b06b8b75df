#include "weft/core/value_walk.h"

#include <vector>

#include "weft/core/struct.h"

namespace weft {
namespace {

// What is inside of a container, by position; nothing is copied.
class Contents {
 public:
  explicit Contents(const Value& value) {
    if (value.is_sequence()) elements_ = &value.elements();
    else if (value.is_dict()) dict_ = &value.to_dict();
    else if (const StructObject* record = struct_in(value)) elements_ = &record->fields();
  }
  bool is_container() const { return elements_ || dict_; }
  size_t size() const { return elements_ ? elements_->size() : dict_->size(); }
  const Value& operator[](size_t i) const {
    return elements_ ? (*elements_)[i] : dict_->begin()[static_cast<ptrdiff_t>(i)].second;
  }

 private:
  const ValueList* elements_ = nullptr;
  const Dict* dict_ = nullptr;
};

// A container of the kind of `like` around other contents.
Value rebuilt(const Value& like, ValueList contents) {
  if (like.is_list()) return Value::list(std::move(contents));
  if (like.is_tuple()) return Value::tuple(std::move(contents));
  if (const StructObject* record = struct_in(like)) return make_struct(record->type(), std::move(contents));
  Dict dict;
  size_t next = 0;
  for (const auto& [key, element] : like.to_dict()) dict.set(key, std::move(contents[next++]));
  return dict;
}

// A container that is being walked through.
struct Open {
  const Value* container;
  Contents contents;
  size_t next = 0;
  ValueList mapped = {};
};

}  // namespace

void for_each_leaf(const Value& value, FunctionRef<void(const Value&)> f) {
  const Contents top(value);
  if (!top.is_container()) return f(value);
  std::vector<Open> open{{&value, top}};
  while (!open.empty()) {
    Open& inner = open.back();
    if (inner.next == inner.contents.size()) {
      open.pop_back();
      continue;
    }
    const Value& element = inner.contents[inner.next++];
    if (const Contents below(element); below.is_container()) open.push_back({&element, below});
    else f(element);
  }
}

Value map_leaves(const Value& value, FunctionRef<Value(const Value&)> f) {
  const Contents top(value);
  if (!top.is_container()) return f(value);
  std::vector<Open> open{{&value, top}};
  while (true) {
    Open& inner = open.back();
    if (inner.mapped.empty()) inner.mapped.reserve(inner.contents.size());
    if (inner.next < inner.contents.size()) {
      const Value& element = inner.contents[inner.next++];
      if (const Contents below(element); below.is_container()) open.push_back({&element, below});
      else inner.mapped.push_back(f(element));
      continue;
    }
    Value made = rebuilt(*inner.container, std::move(inner.mapped));
    open.pop_back();
    if (open.empty()) return made;
    open.back().mapped.push_back(std::move(made));
  }
}

void for_each_tensor(const Value& value, FunctionRef<void(const Tensor&)> f) {
  for_each_leaf(value, [&](const Value& leaf) {
    if (leaf.is_tensor()) f(leaf.tensor_ref());
  });
}

void for_each_tensor(Args values, FunctionRef<void(const Tensor&)> f) {
  for (const Value& value : values) for_each_tensor(value, f);
}

std::vector<Tensor> tensors_in(const Value& value) { return tensors_in(Args(&value, 1)); }

std::vector<Tensor> tensors_in(Args values) {
  std::vector<Tensor> tensors;
  for_each_tensor(values, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

Value map_tensors(const Value& value, FunctionRef<Value(const Tensor&)> f) {
  return map_leaves(value, [&](const Value& leaf) { return leaf.is_tensor() ? f(leaf.tensor_ref()) : leaf; });
}

ValueList map_tensors(Args values, FunctionRef<Value(const Tensor&)> f) {
  ValueList mapped;
  mapped.reserve(values.size());
  for (const Value& value : values) mapped.push_back(map_tensors(value, f));
  return mapped;
}

}  // namespace weft
