#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weft/core/value.h"

namespace weft {

// A class whose objects programs hold as constants, and hand to operators that take them. Files keep what
// `save` gives: numbers, strings, tensors, and containers of them.
//
//   struct Tokenizer : ValueObject {
//     std::string type_name() const override { return "my_lib.Tokenizer"; }
//     std::vector<int64_t> table;
//   };
//   register_custom_class<Tokenizer>("my_lib.Tokenizer",
//                                    [](const Tokenizer& t) { return to_value(t.table); },
//                                    [](const Value& table) { return make_ref<Tokenizer>(table); });
struct CustomClass {
  std::string name;  // what type_name() of its objects gives
  std::function<Value(const ValueObject& object)> save;
  std::function<Value(const Value& state)> load;
};
// An error where there is another class of that name.
void register_custom_class(CustomClass custom_class);
// Null where nobody registered it.
const CustomClass* find_custom_class(std::string_view name);

template <typename T, typename Save, typename Load>
void register_custom_class(std::string name, Save save, Load load) {
  register_custom_class(
      CustomClass{std::move(name),
                  [save](const ValueObject& object) { return Value(save(dynamic_cast<const T&>(object))); },
                  [load](const Value& state) { return Value(Ref<ValueObject>(load(state))); }});
}

}  // namespace weft
