#pragma once

#include "weft/dispatch/layers.h"

namespace weft::aot {

// What a compilation is made under: the caller's casts and grad mode, and nothing else that is active.
class CompileScope {
 public:
  CompileScope() {
    LayerState& state = layer_state();
    state.active &= layer::kAutocast;
    state.mask = layer::kAll | layer::kNotLayers;
    state.level_depth = 0;
  }

 private:
  LayerStateScope saved_;
};

// Graphs run as they are: casts and histories of what they call were settled when they were traced.
class GraphScope {
 public:
  GraphScope() {
    layer_state().grad_mode = false;
    layer_state().mask &= ~layer::kAutocast;
  }

 private:
  LayerStateScope saved_;
};

}  // namespace weft::aot
