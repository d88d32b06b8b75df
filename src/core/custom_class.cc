#include "weft/core/custom_class.h"

#include <map>
#include <mutex>

#include "weft/base/error.h"

namespace weft {
namespace {

struct CustomClasses {
  std::mutex mutex;
  std::map<std::string, CustomClass, std::less<>> classes;  // whose entries stay where they are
};

CustomClasses& custom_classes() {
  static CustomClasses classes;
  return classes;
}

}  // namespace

void register_custom_class(CustomClass custom_class) {
  CustomClasses& known = custom_classes();
  const std::lock_guard lock(known.mutex);
  const std::string name = custom_class.name;
  require(!name.empty() && custom_class.save && custom_class.load,
          "register_custom_class: '{}' needs a name, and functions that save and load its objects", name);
  require(known.classes.emplace(name, std::move(custom_class)).second,
          "register_custom_class: there is a class '{}' already", name);
}

const CustomClass* find_custom_class(std::string_view name) {
  CustomClasses& known = custom_classes();
  const std::lock_guard lock(known.mutex);
  auto found = known.classes.find(name);
  return found == known.classes.end() ? nullptr : &found->second;
}

}  // namespace weft
