#pragma once

#include "weft/graph/graph.h"
#include "weft/graph/text.h"

namespace weft {

struct CallSpec;

// A way to write a graph as a Python function: PyTorch's, plain or with what is known of each value.
struct CodeStyle {
  std::string_view heading;  // before the function
  std::string_view indent;   // before `def`
  // Types and sizes from `meta().value` instead of `meta().type` alone, and comments that say where calls
  // were made.
  bool verbose = false;
  bool strides = false, devices = false, requires_grad = false;  // only with `verbose`
  // Of a function over trees: its parameters are taken apart first, and the result is put together.
  const CallSpec* call_spec = nullptr;
};

// The heading, "def forward(self, x):" and the lines after it, each with its end.
std::string function_code(const Graph& graph, const CodeStyle& style);

// readable() of a graph, with its call spec where there is one.
std::string readable_code(const Graph& graph, std::string_view class_name, const ReadableOptions& options,
                          const CallSpec* call_spec);

// `f32[s0, 4]`, `Sym(s0*4)`; empty for what PyTorch gives no annotation. With everything:
// `f32[s0, 4][4, 1]cpu requires_grad`.
std::string value_annotation(const Value& value, const ReadableOptions& options = {});
// The type and sizes of what a node gives, of each part where it gives several; else its declared type.
std::string shown_type(const Node& node);

}  // namespace weft
