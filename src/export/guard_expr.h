#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// A condition on inputs in Python, as PyTorch writes guards: "L['x'].size()[0] <= 64 and L['n'] != 1".
class GuardExpr {
 public:
  // Where a number is read: an argument and the steps from it to the leaf ("['a']", "[0]", ".x"), then the
  // dim of a size, or the number itself.
  struct Reading {
    std::string root;
    std::vector<std::string> steps;
    enum class Property : uint8_t { kValue, kSize, kStride, kOffset } property = Property::kValue;
    int64_t dim = 0;
  };
  // The number that a reading gives; nothing where it is not known, or symbolic.
  using Read = std::function<std::optional<double>(const Reading& reading)>;
  // How a reading is called in messages.
  using Name = std::function<std::string(const Reading& reading)>;

  // Nothing for text that is no such condition: another program than this must decide it.
  static std::optional<GuardExpr> parse(std::string_view text);

  // Whether it holds; nothing where a reading gives nothing, or the value is undefined.
  std::optional<bool> holds(const Read& read) const;
  // As Python writes it, with no more parentheses than needed.
  std::string to_string(const Name& name) const;
  std::vector<Reading> readings() const;

  struct Node;

 private:
  explicit GuardExpr(std::shared_ptr<const Node> root) : root_(std::move(root)) {}
  std::shared_ptr<const Node> root_;
};

}  // namespace weft
