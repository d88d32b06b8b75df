#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/base/warning.h"
#include "weft/capture/trace.h"
#include "weft/capture/trace_tools.h"
#include "weft/core/pytree.h"
#include "weft/io/graph_file.h"

namespace weft::testing {

inline Value args(std::initializer_list<Value> values) { return Value::tuple(values); }
inline Tensor scalar(double value, DType dtype = kFloat32) { return full({}, value, dtype); }

inline Tensor on_cpu(const Tensor& tensor) { return to(tensor, std::nullopt, std::nullopt, kCpu); }

// Values of the same structure, with tensors that are equal (or close) at the same paths.
inline void expect_values(const Value& got, const Value& wanted, double tolerance = 0) {
  ASSERT_EQ(got.kind_name(), wanted.kind_name());
  if (got.is_sequence()) {
    ASSERT_EQ(got.elements().size(), wanted.elements().size());
    for (size_t i = 0; i < got.elements().size(); ++i)
      expect_values(got.elements()[i], wanted.elements()[i], tolerance);
  } else if (got.is_dict()) {
    ASSERT_EQ(got.to_dict().size(), wanted.to_dict().size());
    for (const auto& [key, value] : wanted.to_dict()) {
      const Value* own = got.to_dict().find(key);
      ASSERT_NE(own, nullptr) << key.to_string();
      expect_values(*own, value, tolerance);
    }
  } else if (got.is_tensor()) {
    EXPECT_EQ(got.tensor_ref().dtype(), wanted.tensor_ref().dtype());
    EXPECT_EQ(got.tensor_ref().device(), wanted.tensor_ref().device());
    EXPECT_TRUE(close(on_cpu(got.tensor_ref()), on_cpu(wanted.tensor_ref()), tolerance, tolerance));
  } else {
    EXPECT_EQ(got, wanted);
  }
}

// The words of all warnings that come while it runs.
inline std::vector<std::string> warnings_of(FunctionRef<void()> run) {
  WarningCapture capture;
  run();
  std::vector<std::string> words;
  for (const Warning& warning : capture.warnings())
    words.push_back(std::string(to_string(warning.kind)) + ": " + warning.message);
  return words;
}

// The operators that a graph calls, in order and without their overloads: "add", "add_".
inline std::vector<std::string> operators_in(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph)
    if (const Operator* op = node.target().op()) names.emplace_back(op->schema().name);
  return names;
}

// A graph that went into bytes and a file and came back, the same both times.
inline GraphModule saved_and_loaded(const GraphModule& module) {
  std::string bytes = graph_module_bytes(module);
  GraphModule once = parse_graph_module(bytes);
  EXPECT_EQ(graph_module_bytes(once), bytes);
  std::string path = ::testing::TempDir() + "weft_" + std::to_string(::getpid()) + ".graph";
  save_graph_module(once, path);
  GraphModule twice = load_graph_module(path);
  std::filesystem::remove(path);
  EXPECT_EQ(graph_module_bytes(twice), bytes);
  return twice;
}

inline GraphModule graph_module_of(const TracedFunction& traced) { return traced.graph_module(); }
inline GraphModule graph_module_of(const TracedModule& traced) {
  return traced.method("forward").graph_module();
}
inline ValueFunction original_of(const TracedFunction& traced) { return traced.original(); }
inline ValueFunction original_of(const TracedModule& traced) { return traced.method("forward").original(); }

struct CheckTrace {
  Value reference = {};  // the example inputs
  Value inputs = {};     // what results are compared on; default: the reference
  size_t drop = 0;       // results at the end that are not differentiated
  bool allow_unused = false;
  bool inputs_require_grads = true;
  double tolerance = 8e-4;  // of second derivatives
  std::string arg_names = {};
};

namespace detail {

inline std::vector<Tensor> tensors_of(const Value& tree) {
  std::vector<Tensor> tensors;
  for (const Value& leaf : tree_leaves(tree))
    if (leaf.is_tensor()) tensors.push_back(leaf.to_tensor());
  return tensors;
}
inline bool takes_gradient(const Tensor& tensor) { return is_floating(tensor.dtype()); }
inline Value with_gradients(const Value& tree, bool wanted) {
  Value copy = clone_inputs(tree);
  for (const Tensor& tensor : tensors_of(copy))
    if (takes_gradient(tensor)) tensor.set_requires_grad(wanted);
  return copy;
}
inline ValueList as_arguments(const Value& given) {
  return given.is_sequence() ? given.elements() : ValueList{given};
}

// The sum of each, weighted so that no two are alike; undefined ones do not count.
inline Tensor weighted_sum(const std::vector<Tensor>& tensors) {
  Tensor total;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || !takes_gradient(tensors[i])) continue;
    Tensor part = tensors[i].sum() * std::log(static_cast<double>(i + 2));
    total = total.defined() ? total + part : part;
  }
  return total;
}

struct Derivatives {
  std::vector<Tensor> results, first, second;
};

inline Derivatives differentiate(const ValueFunction& run, const Value& shown, const CheckTrace& options) {
  Derivatives d;
  Value given = with_gradients(shown, true);
  std::vector<Tensor> leaves;
  for (const Tensor& tensor : tensors_of(given))
    if (takes_gradient(tensor)) leaves.push_back(tensor);
  d.results = tensors_of(run(as_arguments(given)));
  std::vector<Tensor> counted(d.results.begin(), d.results.end() - static_cast<ptrdiff_t>(options.drop));
  Tensor loss = weighted_sum(counted);
  EXPECT_TRUE(loss.defined() && loss.requires_grad()) << "there is nothing to differentiate";
  if (!loss.defined() || !loss.requires_grad()) return d;
  d.first = autograd::grad({loss}, leaves, {}, {.create_graph = true, .allow_unused = options.allow_unused});
  Tensor again = weighted_sum(d.first) * loss;
  d.second = autograd::grad({again}, leaves, {}, {.allow_unused = true});
  return d;
}

inline void compare(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted, double tolerance,
                    const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), wanted[i].defined()) << what << " " << i;
    if (!got[i].defined()) continue;
    EXPECT_EQ(got[i].device(), wanted[i].device()) << what << " " << i;
    EXPECT_TRUE(close(on_cpu(got[i]), on_cpu(wanted[i]), tolerance, tolerance)) << what << " " << i;
  }
}

}  // namespace detail

// Traces f, saves and loads what came, and compares the trace, its graph and what was loaded with f itself:
// results with their structure, gradients of their weighted sum, and gradients of those. Gives what was
// loaded.
template <typename F>
GraphModule check_trace(F f, const CheckTrace& options) {
  const Value& shown = options.inputs.is_none() ? options.reference : options.inputs;
  TraceOptions trace_options{.check_trace = false};
  trace_options.arg_names = options.arg_names;
  auto traced = trace(f, options.reference, trace_options);
  GraphModule loaded = saved_and_loaded(graph_module_of(traced));
  ValueFunction eager = original_of(traced);
  Value expected = eager(detail::as_arguments(detail::with_gradients(shown, false)));
  const std::vector<ValueFunction> runs = {[&](Args given) { return traced.call(given); },
                                           graph_module_of(traced).function(), loaded.function()};
  for (const ValueFunction& run : runs)
    expect_values(run(detail::as_arguments(detail::with_gradients(shown, false))), expected, 1e-5);
  if (!options.inputs_require_grads) return loaded;

  detail::Derivatives wanted = detail::differentiate(eager, shown, options);
  for (const ValueFunction& run : runs) {
    detail::Derivatives got = detail::differentiate(run, shown, options);
    detail::compare(got.results, wanted.results, 1e-5, "result");
    detail::compare(got.first, wanted.first, 1e-5, "gradient");
    detail::compare(got.second, wanted.second, options.tolerance, "second gradient");
  }
  return loaded;
}

}  // namespace weft::testing
