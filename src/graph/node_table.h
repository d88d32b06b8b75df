#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/numbered_name.h"
#include "weft/graph/node.h"

namespace weft {

// The nodes of a graph by their names. Those that differ in a number at their end only ("add", "add_1", ...)
// are kept by that number: graphs mostly name their nodes in order, so that a walk over one finds the next
// name beside the last, where a hash table would have it anywhere in its memory.
class NodeTable {
 public:
  // False when the name is there already. It must live as long as the table.
  bool add(std::string_view name, Node& node) {
    const NumberedName parts(name);
    if (find(name, parts)) return false;
    Family& family = families_[parts.base];
    if (!parts.number) family.bare = &node;
    else if (parts.is_plain && family.fits(*parts.number)) family.set(*parts.number, node);
    else others_.emplace(name, &node);
    return true;
  }
  // Null when there is none.
  Node* find(std::string_view name) const { return find(name, NumberedName(name)); }

 private:
  struct Family {
    Node* bare = nullptr;
    std::vector<Node*> numbered;
    size_t count = 0;
    // Numbers that are far from the others would need more memory than an entry of a hash table.
    bool fits(int64_t number) const { return static_cast<size_t>(number) <= 2 * count + 64; }
    void set(int64_t number, Node& node) {
      const auto at = static_cast<size_t>(number);
      if (at >= numbered.size()) numbered.resize(at + 1);
      numbered[at] = &node;
      ++count;
    }
  };

  Node* find(std::string_view name, const NumberedName& parts) const {
    auto family = families_.find(parts.base);
    if (family == families_.end()) return nullptr;
    if (!parts.number) return family->second.bare;
    const auto at = static_cast<size_t>(*parts.number);
    const std::vector<Node*>& numbered = family->second.numbered;
    if (parts.is_plain && at < numbered.size() && numbered[at]) return numbered[at];
    if (others_.empty()) return nullptr;
    auto other = others_.find(name);
    return other == others_.end() ? nullptr : other->second;
  }

  std::unordered_map<std::string_view, Family> families_;
  std::unordered_map<std::string_view, Node*> others_;
};

}  // namespace weft
