#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "weft/graph/graph.h"

namespace weft {

// The number that an expression is.
Value symbolic_value(const sym::Expr* expr);

// Symbolic numbers of a capture as nodes. A number is known by its expression; where its symbol is the size
// of a tensor, the node that reads it is made when somebody first needs it.
class SizeNodes {
 public:
  enum class Notes : uint8_t { kNothing, kValues };
  // With kValues the nodes that it makes say what they give (`meta().value`).
  explicit SizeNodes(Graph& graph, Notes notes = Notes::kNothing) : graph_(graph), notes_(notes) {}

  // From now on nodes that it makes say what they give.
  void note_values() { notes_ = Notes::kValues; }

  bool has(const sym::Expr* expr) const { return nodes_.contains(expr); }
  // The value of this expression is what the node gives.
  void define(const sym::Expr* expr, Node& node) { nodes_[expr] = &node; }
  // Sizes, strides and the offset of the tensor that are symbols met for the first time can be read off it; a
  // symbol that is in no other place, off a size such as 4*s0 + 1.
  void offer(const Tensor& tensor, Node& node);
  void offer_size(const sym::Expr* expr, Node& tensor, int64_t dim) {
    sources_.try_emplace(expr, Source{&tensor, Quantity::kSize, dim});
  }
  // From `change` on the tensor that this node gave has other sizes: the ones it had are read before.
  void note_change(const Node& tensor, Node& change) { changes_.try_emplace(&tensor, &change); }
  // These nodes are no longer there.
  void forget(const std::unordered_set<const Node*>& gone) {
    std::erase_if(nodes_, [&](const auto& entry) { return gone.contains(entry.second); });
    std::erase_if(sources_, [&](const auto& entry) { return gone.contains(entry.second.tensor); });
    std::erase_if(solved_, [&](const auto& entry) { return gone.contains(entry.second.source.tensor); });
    std::erase_if(changes_, [&](const auto& entry) {
      return gone.contains(entry.first) || gone.contains(entry.second);
    });
  }
  // Who gives a node for a symbol that nothing tells; by default it is an error.
  void on_unknown(std::function<Node&(const sym::Expr*)> give) { unknown_ = std::move(give); }
  // A plain number as it is; for an expression the node that computes it, made from those of its symbols.
  Value value_for(const Value& number);

 private:
  enum class Quantity : uint8_t { kSize, kStride, kOffset };
  struct Source {
    Node* tensor;
    Quantity quantity;
    int64_t dim;
  };
  // A size that is scale * symbol + shift.
  struct Solved {
    Source source;
    const sym::Expr* size;
    int64_t scale, shift;
  };
  Node& read(const Source& source);
  Node& solve(const Solved& equation);
  Value node_for(const sym::Expr* expr);
  Node& make(const sym::Expr* expr);
  Node& node_of_symbol(const sym::Expr* symbol);
  Value computed(const sym::Expr* expr);
  Value applied(std::string_view function, bool is_folded, const sym::Expr* expr);
  struct Term {
    const sym::Expr* factor;
    int64_t coefficient;
  };
  Value sum(std::span<const Term> terms, int64_t constant);
  Value polynomial(const sym::Expr* expr);
  Value comparison(const sym::Expr* expr, std::string_view function, std::string_view mirrored);
  Value product(const sym::Expr* expr);
  Value call(std::string_view function, ValueList args);
  static void note_result(Node& node);

  Graph& graph_;
  Notes notes_;
  std::unordered_map<const sym::Expr*, Node*> nodes_;
  std::unordered_map<const sym::Expr*, Source> sources_;
  std::unordered_map<const sym::Expr*, Solved> solved_;  // for want of a source
  std::unordered_map<const Node*, Node*> changes_;       // the first of each
  std::function<Node&(const sym::Expr*)> unknown_;
};

}  // namespace weft
