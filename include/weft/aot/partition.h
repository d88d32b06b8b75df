#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/graph/graph_module.h"

namespace weft::aot {

// Forward and backward of a joint graph as graphs of their own. The forward gives, after its own outputs, the
// values that are saved: tensors, then symbolic integers. The backward takes the saved symbolic integers, the
// saved tensors and the tangents.
struct Partition {
  GraphModule forward, backward;
  size_t num_saved_tensors = 0, num_saved_symbols = 0;
};

// A joint graph has placeholders primals_1, ..., then tangents_1, ...; its output is a list, of which the
// first `num_forward_outputs` are those of the forward, and the others gradients.
using Partitioner = std::function<Partition(const GraphModule& joint, size_t num_forward_outputs)>;

// Whatever the forward computes and the backward uses is saved; of a tensor whose sizes alone are used, the
// sizes.
Partition default_partition(const GraphModule& joint, size_t num_forward_outputs);

// What the backward can compute again from less, at little cost, is not saved: the cheapest set of values by
// size and distance, found as a minimum cut. Matmuls, convolutions, normalisations and random numbers are
// computed once.
struct MinCutOptions {
  // The operators that may be computed again. None given: pointwise ones, views, reductions and factories.
  // What draws random numbers or has effects never is.
  std::optional<std::vector<const Operator*>> recomputable_ops = std::nullopt;
};
Partition min_cut_rematerialization_partition(const GraphModule& joint, size_t num_forward_outputs,
                                              const MinCutOptions& options = {});
// The same as a Partitioner.
Partitioner min_cut_partitioner(MinCutOptions options = {});

// What a partition keeps between forward and backward.
struct SavedReport {
  struct Entry {
    std::string name;
    int64_t bytes = 0;  // at the example's sizes; of a symbolic integer 0
  };
  std::vector<Entry> saved;
  std::vector<std::string> recomputed;  // nodes of the forward that the backward computes again
  int64_t total_bytes = 0;
  // Without the saved values for whose names it is true.
  SavedReport without(FunctionRef<bool(const std::string& name)> is_left_out) const;
  std::string to_string() const;
};
SavedReport report(const Partition& partition);
// Forward and backward in one picture (weft/graph/picture.h), coloured by what is an input, forward, saved,
// backward and recomputed; what is saved has its bytes.
std::string dot(const Partition& partition);
std::string svg(const Partition& partition);

bool is_tangent(const Node& node);
// A node that gives a symbolic number.
bool is_symbolic_number_node(const Node& node);

// The nodes of `graph` that compute `outputs` from `inputs`, which become placeholders under their names. An
// error that names a node which cannot be computed.
Graph extract_graph(const Graph& graph, const std::vector<Node*>& inputs, const ValueList& outputs,
                    std::function<bool(const Node&)> is_left_out = nullptr);

}  // namespace weft::aot
