#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/value.h"

namespace weft {

// Arguments by name, in the order they were given.
using Kwargs = std::vector<std::pair<std::string, Value>>;

// The names of a function's arguments, with defaults, from a text as C++ would declare them: "x, scale = 2".
// A default is a number, a bool, a string or nullopt. As in Python, a name that begins with * takes the
// positions that are left over, as a list, and names behind it are given by name only; a last name that
// begins with ** takes every argument that is given by an unknown name, as a dictionary.
class ArgumentNames {
 public:
  struct Entry {
    std::string name;
    std::optional<Value> default_value;
  };

  ArgumentNames() = default;
  explicit ArgumentNames(std::string_view text);
  // Read once for each literal.
  static const ArgumentNames& of(const char* literal);

  const std::vector<Entry>& entries() const noexcept { return entries_; }
  bool empty() const noexcept { return entries_.empty(); }
  std::optional<size_t> find(std::string_view name) const;
  bool takes_any_name() const;
  // Where the name with one star stands.
  std::optional<size_t> rest_position() const;
  // One value for each name. `what` begins the errors: an unknown name (which lists the known ones), one that
  // is given twice, one that is missing, too many values.
  ValueList bind(Args args, const Kwargs& kwargs = {}, std::string_view what = "forward") const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace weft
