#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// A call of a module.
struct ModuleScope {
  std::string path;        // "layer1.0"; what the root's is, the capture says
  std::string class_name;  // "Bottleneck"
  int64_t call = 0;        // tells two calls of one module apart

  bool operator==(const ModuleScope&) const = default;
};

// The calls of modules around a node, outermost first. They do not change, and the nodes of one call share
// them.
class ModuleStack {
 public:
  ModuleStack() = default;
  ModuleStack(std::vector<ModuleScope> scopes)  // NOLINT(google-explicit-constructor)
      : scopes_(std::make_shared<const std::vector<ModuleScope>>(std::move(scopes))) {}
  ModuleStack(std::initializer_list<ModuleScope> scopes) : ModuleStack(std::vector<ModuleScope>(scopes)) {}

  bool empty() const noexcept { return size() == 0; }
  size_t size() const noexcept { return scopes_ ? scopes_->size() : 0; }
  const ModuleScope& operator[](size_t i) const { return (*scopes_)[i]; }
  const ModuleScope& back() const { return scopes_->back(); }
  const ModuleScope* begin() const noexcept { return scopes_ ? scopes_->data() : nullptr; }
  const ModuleScope* end() const noexcept { return begin() + size(); }
  // The same with a call inside.
  ModuleStack with(ModuleScope inner) const {
    std::vector<ModuleScope> scopes(begin(), end());
    scopes.push_back(std::move(inner));
    return scopes;
  }
  bool operator==(const ModuleStack& other) const {
    return scopes_ == other.scopes_ || std::vector(begin(), end()) == std::vector(other.begin(), other.end());
  }

 private:
  std::shared_ptr<const std::vector<ModuleScope>> scopes_;
};

}  // namespace weft
