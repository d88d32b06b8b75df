#include "weft/graph/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "graph/text/code.h"
#include "graph/text/value_text.h"
#include "weft/core/value_walk.h"
#include "weft/graph/annotation.h"

namespace weft {
namespace {

bool same_real(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::string shown(const Value& value) {
  std::string text;
  append_value(text, value, ValueStyle::kQuoted);
  return text;
}

// Compares values, and keeps the first position where they differ: "args[0][1]: 1 against 2".
class ValueComparison {
 public:
  const std::string& difference() const { return difference_; }

  bool compare_arguments(const ValueList& a, const ValueList& b) {
    if (a.size() != b.size()) return differ("arguments", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      if (!compare_at({.before = "args", .index = i}, a[i], b[i])) return false;
    return true;
  }

  bool compare_keywords(const Kwargs& a, const Kwargs& b) {
    if (a.size() != b.size()) return differ("keywords", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].first != b[i].first)
        return differ(fmt::format("keyword '{}' against '{}'", a[i].first, b[i].first));
      if (!compare_at({.before = "kwargs", .name = a[i].first}, a[i].second, b[i].second)) return false;
    }
    return true;
  }

 private:
  // One step on the way into a value; its text is made only for a difference.
  struct Step {
    std::string_view before = {};
    std::string_view name = {};
    const Value* key = nullptr;
    size_t index = 0;

    std::string text() const {
      if (key) return fmt::format("{}[{}]", before, shown(*key));
      if (name.data()) return fmt::format("{}['{}']", before, name);
      return fmt::format("{}[{}]", before, index);
    }
  };

  bool differ(const std::string& how) {
    for (const Step& step : path_) difference_ += step.text();
    difference_ += (path_.empty() ? "" : ": ") + how;
    return false;
  }
  bool differ(const char* what, size_t a, size_t b) {
    return differ(fmt::format("{} {} against {}", a, what, b));
  }
  bool differ(const Value& a, const Value& b) {
    return differ(fmt::format("{} against {}", shown(a), shown(b)));
  }

  bool compare_at(Step step, const Value& a, const Value& b) {
    path_.push_back(step);
    const bool same = compare(a, b);
    path_.pop_back();
    return same;
  }

  bool compare(const Value& a, const Value& b) {
    if (const Node *node_a = node_in(a), *node_b = node_in(b); node_a && node_b)
      return node_a->name() == node_b->name() || differ(a, b);
    if (a.kind() != b.kind()) return differ(a, b);
    switch (a.kind()) {
      case Value::Kind::kDouble:
        return same_real(a.to_double(), b.to_double()) || differ(a, b);
      case Value::Kind::kComplex: {
        const Complex<double> x = a.to_complex(), y = b.to_complex();
        return (same_real(x.re, y.re) && same_real(x.im, y.im)) || differ(a, b);
      }
      case Value::Kind::kList:
      case Value::Kind::kTuple:
        return compare_elements(a.elements(), b.elements());
      case Value::Kind::kDict:
        return compare_entries(a.to_dict(), b.to_dict());
      default:
        return a == b || differ(a, b);
    }
  }

  bool compare_elements(const ValueList& a, const ValueList& b) {
    if (a.size() != b.size()) return differ("elements", a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      if (!compare_at({.index = i}, a[i], b[i])) return false;
    return true;
  }

  bool compare_entries(const Dict& a, const Dict& b) {
    if (a.size() != b.size()) return differ("entries", a.size(), b.size());
    for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
      if (!compare_at({.before = ".keys()", .index = static_cast<size_t>(i - a.begin())}, i->first, j->first))
        return false;
      if (!compare_at({.key = &i->first}, i->second, j->second)) return false;
    }
    return true;
  }

  std::string difference_;
  std::vector<Step> path_;
};

std::string node_difference(const Node& a, const Node& b) {
  if (a.kind() != b.kind())
    return fmt::format("kind: {} against {}", kind_name(a.kind()), kind_name(b.kind()));
  if (a.target() != b.target())
    return fmt::format("target: {} against {}", a.target().to_string(), b.target().to_string());
  ValueComparison values;
  if (values.compare_arguments(a.args(), b.args())) values.compare_keywords(a.kwargs(), b.kwargs());
  return values.difference();
}

// --- notes -----------------------------------------------------------------------------------------------

std::string tensor_note(const Value& tensor) {
  return value_annotation(tensor, {.strides = true, .devices = true, .requires_grad = true});
}

// All that is compared of a noted value.
std::string note_text(const Value& value) {
  if (value.is_tensor()) return tensor_note(value);
  auto text = [](const Value& leaf) { return leaf.is_tensor() ? Value(tensor_note(leaf)) : leaf; };
  return map_leaves(value, text).to_string();
}

std::string note_difference(const Node& a, const Node& b) {
  static const NodeMeta nothing;
  const NodeMeta &x = a.meta_or_null() ? *a.meta_or_null() : nothing,
                 &y = b.meta_or_null() ? *b.meta_or_null() : nothing;
  auto text = [](const std::optional<Type>& type) { return type ? annotation(*type) : "none"; };
  if (x.type != y.type) return fmt::format("type: {} against {}", text(x.type), text(y.type));
  const std::string first = note_text(x.value), second = note_text(y.value);
  return first == second ? "" : fmt::format("value: {} against {}", first, second);
}

}  // namespace

std::string difference(const Graph& a, const Graph& b, const CompareOptions& options) {
  const Node *x = a.front(), *y = b.front();
  for (size_t position = 0; x || y; ++position) {
    if (!x || !y)
      return fmt::format("{} nodes against {}: only {} has node {} '{}'", a.size(), b.size(),
                         x ? "the first" : "the second", position, (x ? x : y)->name());
    if (x->name() != y->name())
      return fmt::format("node {}: name: '{}' against '{}'", position, x->name(), y->name());
    if (std::string how = node_difference(*x, *y); !how.empty())
      return fmt::format("node {} '{}': {}", position, x->name(), how);
    if (std::string how = options.notes ? note_difference(*x, *y) : ""; !how.empty())
      return fmt::format("node {} '{}': {}", position, x->name(), how);
    x = x->next();
    y = y->next();
  }
  return "";
}

bool same_graph(const Graph& a, const Graph& b, const CompareOptions& options) {
  return difference(a, b, options).empty();
}

}  // namespace weft
