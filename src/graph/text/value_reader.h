#pragma once

#include <unordered_set>

#include "graph/node_table.h"
#include "graph/text/text_reader.h"
#include "weft/graph/graph.h"
#include "weft/graph/parse.h"

namespace weft {

// Reads values as append_value writes them, with ValueStyle::kCode or kQuoted, and knows the nodes that were
// read before them.
class ValueReader {
 public:
  enum class Nodes : uint8_t {
    kNamed,   // x
    kMarked,  // %x
  };

  ValueReader(TextReader& in, Nodes nodes, const ParseOptions& options)
      : in_(in), nodes_(nodes), options_(options) {}

  Value read() { return read(0); }
  // Whether a number is next, with its sign if it has one.
  bool at_number() const;
  // `name` must outlive the reader: it is a piece of the text.
  void define(std::string_view name, Node& node) { known_.add(name, node); }
  Node* find(std::string_view name) const { return known_.find(name); }
  // Makes a node of exactly this name, which stands at `offset`, and remembers it.
  Node& create(Graph& graph, NodeKind kind, Target target, ValueList args, Kwargs kwargs,
               std::string_view name, size_t offset);
  // The operator or function of this name, which stands at `offset`.
  Target function(std::string_view name, size_t offset) const;

 private:
  struct Number {
    double real = 0;
    int64_t integer = 0;
    bool is_integer = false, is_imaginary = false;
  };

  Value read(int depth);
  Value read_word();
  Value read_parenthesized(int depth);
  ValueList read_elements(char end, int depth);
  Value read_dict(int depth);
  Value read_number();
  Number read_real();
  Value read_operator(size_t offset);
  Value read_constant(std::string_view name, size_t offset);
  Value read_device();
  Value read_complex();
  Value read_float();
  Node& read_node(std::string_view name, size_t offset) const;
  void open(char bracket) {
    in_.expect({&bracket, 1});
    in_.skip_layout();
  }

  TextReader& in_;
  Nodes nodes_;
  const ParseOptions options_;
  NodeTable known_;
};

// Arguments by name while they are read: a name comes once.
class KeywordReader {
 public:
  // False when the key is there already.
  bool add(std::string key, Value value);
  bool empty() const { return kwargs_.empty(); }
  Kwargs take() { return std::move(kwargs_); }

 private:
  Kwargs kwargs_;
  std::unordered_set<std::string> keys_;  // only for lists that are long enough to need it
};

}  // namespace weft
