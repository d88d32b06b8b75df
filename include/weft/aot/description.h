#pragma once

#include <string>
#include <vector>

#include "weft/core/pytree.h"
#include "weft/core/view_step.h"

namespace weft::aot {

// Where a write to an input takes place when the compiled program runs.
enum class WriteBack : uint8_t {
  kNone,     // nothing happens to it
  kInGraph,  // a copy_ at the end of the graph
  kOutside,  // the graph gives the new value, and the caller's tensor takes it after the run
};

// What a call does to one of its inputs.
struct InputUse {
  bool is_tensor = false;
  bool is_leaf = true;
  bool requires_grad = false;  // as it was given
  bool requires_grad_after = false;
  bool is_written = false;               // its elements
  bool changes_metadata = false;         // its sizes, strides or memory: `t_`, `set_`, `resize_`
  bool replaces_storage = false;         // looks at other memory: `set_`
  bool resizes_storage = false;          // its storage is emptied, or filled again
  SymInt storage_bytes = 0;              // then: what its storage measures after the call
  bool is_hidden_from_autograd = false;  // every write is: through `.data`
  bool is_under_no_grad = false;         // every write is, or hidden
  WriteBack write_back = WriteBack::kNone;
  Ref<ViewStep> steps = nullptr;  // how it came to its geometry, from what it was
  Value after = {};               // its type and geometry after the call

  // The storage has no elements when the call begins, or when it ends.
  bool fills_storage() const {
    return resizes_storage && !replaces_storage && !known(storage_bytes == SymInt(0));
  }
  bool empties_storage() const { return resizes_storage && known(storage_bytes == SymInt(0)); }
  bool is_changed() const { return is_written || changes_metadata || resizes_storage; }
};

// Where an output of a call comes from.
struct OutputOrigin {
  enum class Kind : uint8_t {
    kPlain,         // no tensor: a number, None
    kFresh,         // a value of its own
    kInput,         // input `source` itself
    kViewOfInput,   // `steps` from input `source`
    kViewOfBase,    // `steps` from base `source`, an intermediate that the graph gives besides
    kViewOfOutput,  // `steps` from output `source`
    kOutput,        // output `source` itself
    kHiddenView,    // one of several views of an input that one operator gave: autograd takes it for a value
  };
  Kind kind = Kind::kPlain;
  size_t source = 0;
  Ref<ViewStep> steps = nullptr;  // without a base; null where a view has the geometry of its source
  bool requires_grad = false;
  bool is_leaf = false;         // with requires_grad: the program made it one, x.view(-1).requires_grad_()
  bool is_silent_view = false;  // made while gradients were not recorded: has no history of its own
  Value like = {};              // of a tensor: its type and geometry

  // A leaf that requires a gradient, though it shows memory of something that has a history.
  bool is_silent_leaf() const { return kind == Kind::kFresh && is_silent_view && requires_grad; }
  bool is_regenerated() const {
    return is_silent_leaf() || (kind != Kind::kPlain && kind != Kind::kFresh && kind != Kind::kHiddenView);
  }
};

// What a call does, found out by one run on tensors without data. Tracing, partitioning, the run-time steps
// and signatures all read it.
//
// The outputs of the graph are, in this order: the new values of inputs that are written back outside, the
// outputs of the call, and the bases.
struct CallDescription {
  std::vector<InputUse> inputs;
  std::vector<OutputOrigin> outputs;
  std::vector<Value> bases;          // like OutputOrigin::like
  std::vector<size_t> written_back;  // inputs, in order
  // Whether something that comes out requires a gradient, so that there is a backward graph.
  bool needs_backward = false;
  TreeSpec result;  // how the outputs make up what the call returns

  size_t num_graph_outputs() const { return written_back.size() + outputs.size() + bases.size(); }
  // Whether the graph's output takes a tangent in the backward graph.
  bool has_tangent(size_t graph_output) const;
  // One line for each input that is changed and for each output.
  std::string to_string() const;
};

}  // namespace weft::aot
