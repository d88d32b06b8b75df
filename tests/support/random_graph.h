#pragma once

#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "weft/graph/annotation.h"
#include "weft/graph/graph.h"

namespace weft::testing {

// Graphs of every kind of node with every kind of value that texts can hold, the same for the same seed.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  Graph make(size_t nodes) {
    Graph graph;
    nodes_.clear();
    const size_t parameters = below(4);
    for (size_t i = 0; i < parameters; ++i) add(placeholder(graph, i));
    for (size_t i = 0; i < nodes; ++i) add(statement(graph));
    if (below(8) > 0) graph.output(value(2));
    return graph;
  }

  // No node, and `depth` containers around it at most.
  Value constant(int depth) {
    const std::vector<Node*> none;
    const std::vector<Node*> kept = std::exchange(nodes_, none);
    Value made = value(depth);
    nodes_ = kept;
    return made;
  }

  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }

 private:
  template <typename T, size_t n>
  T one_of(const T (&choices)[n]) {
    return choices[below(n)];
  }

  void add(Node& node) {
    if (below(8) == 0) {
      static const char* const types[] = {"torch.Tensor", "typing.Dict[str, torch.Tensor]", "a = b\n", "int",
                                          "[x"};
      node.meta().type = parse_annotation(one_of(types));
    }
    if (below(10) == 0) node.rename(identifier());
    nodes_.push_back(&node);
  }

  Node& placeholder(Graph& graph, size_t i) {
    const std::string name =
        std::string(below(6) == 0 ? below(3) : 0, '*') + one_of(kNames) + std::to_string(i);
    if (below(3) > 0) return graph.placeholder(name);
    return graph.placeholder(name, constant(1));
  }

  Node& statement(Graph& graph) {
    switch (below(6)) {
      case 0:
        return graph.get_attr(path());
      case 1: {
        ValueList args{value(1)};
        ValueList more = arguments();
        args.insert(args.end(), more.begin(), more.end());
        return graph.call_method(path(), std::move(args), keywords());
      }
      case 2:
        return graph.call_module(path(), arguments(), keywords());
      case 3: {
        static const char* const functions[] = {"add", "sub", "mul", "truediv", "floordiv", "mod", "eq",
                                                "ne",  "lt",  "le",  "gt",      "ge",       "neg", "getitem"};
        return graph.call(python_function(std::string("operator.") + one_of(functions)), arguments(),
                          below(5) == 0 ? keywords() : Kwargs{});
      }
      default: {
        static const char* const operators[] = {"aten::add.Tensor",      "aten::relu", "aten::cat",
                                                "aten::sum.dim_IntList", "aten::full", "aten::add_.Tensor"};
        return graph.call(operator_named(one_of(operators)), arguments(), keywords());
      }
    }
  }

  ValueList arguments() {
    ValueList args;
    for (size_t i = below(4); i > 0; --i) args.push_back(value(2));
    return args;
  }

  Kwargs keywords() {
    Kwargs kwargs;
    for (size_t i = below(3); i > 0; --i)
      kwargs.emplace_back(below(5) == 0 ? text() + std::to_string(i) : identifier() + std::to_string(i),
                          value(2));
    return kwargs;
  }

  std::string path() {
    std::string path;
    for (size_t i = 1 + below(3); i > 0; --i) {
      std::string part = below(3) > 0 ? identifier() : below(2) ? std::to_string(below(10)) : text();
      std::erase(part, '.');
      path += (path.empty() ? "" : ".") + part;
    }
    return path;
  }

  std::string identifier() { return one_of(kNames); }

  std::string text() {
    std::string bytes;
    for (size_t i = below(6); i > 0; --i) {
      if (below(3) == 0) bytes += one_of(kPieces);
      else bytes += static_cast<char>(below(2) ? 0x20 + below(0x5f) : below(256));
    }
    return bytes;
  }

  double real() {
    static constexpr double special[] = {0.0,
                                         -0.0,
                                         1.0,
                                         -1.0,
                                         0.1,
                                         1e16,
                                         1e-5,
                                         5e-324,
                                         std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::quiet_NaN(),
                                         std::numeric_limits<double>::max()};
    return below(2) ? one_of(special) : std::bit_cast<double>(random_());
  }

  int64_t integer() {
    static constexpr int64_t special[] = {0, 1, -1, std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min()};
    return below(3) ? static_cast<int64_t>(below(20)) - 10 : one_of(special);
  }

  Value value(int depth) {
    if (!nodes_.empty() && below(2)) return value_of(*nodes_[below(nodes_.size())]);
    switch (below(depth > 0 ? 13 : 10)) {
      case 0:
        return {};
      case 1:
        return below(2) == 0;
      case 2:
        return integer();
      case 3:
        return real();
      case 4:
        return Complex<double>(real(), real());
      case 5:
        return text();
      case 6:
        return static_cast<DType>(below(kDTypeCount));
      case 7:
        return Device(static_cast<DeviceType>(below(3)), static_cast<int>(below(3)));
      case 8:
        return Layout::kStrided;
      case 9:
        return static_cast<MemoryFormat>(below(4));
      case 10:
      case 11: {
        ValueList elements;
        for (size_t i = below(4); i > 0; --i) elements.push_back(value(depth - 1));
        return below(2) ? Value::list(std::move(elements)) : Value::tuple(std::move(elements));
      }
      default: {
        Dict dict;
        for (size_t i = below(4); i > 0; --i) dict.set(key(), value(depth - 1));
        return dict;
      }
    }
  }

  Value key() {
    switch (below(4)) {
      case 0:
        return integer();
      case 1:
        return 0.5 * static_cast<double>(below(9));
      case 2:
        return Value::tuple({integer(), text()});
      default:
        return text();
    }
  }

  static constexpr const char* kNames[] = {"x",     "weight",   "layer1", "add",  "output", "_0",    "input",
                                           "neg_7", "infinity", "nano",   "self", "torch",  "return"};
  static constexpr const char* kPieces[] = {"\u00e9", "\U0001f600", "\xff", "'", "\"",
                                            "\\",     "\n",         "%x",   "#", "\u0085"};

  std::mt19937_64 random_;
  std::vector<Node*> nodes_;
};

}  // namespace weft::testing
