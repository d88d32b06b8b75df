#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/trace.h"
#include "weft/capture/trace_tools.h"
#include "weft/core/pytree.h"
#include "weft/io/graph_file.h"

namespace weft::testing {

inline Value args(std::initializer_list<Value> values) { return Value::tuple(values); }

struct CheckTrace {
  Value reference = {};  // the example inputs
  Value inputs = {};     // what results are compared on; default: the reference
  size_t drop = 0;       // results at the end that are not differentiated
  bool allow_unused = false;
  bool inputs_require_grads = true;
  double tolerance = 8e-4;
  std::string arg_names = {};
};

// A graph that went into bytes and a file and came back, the same both times.
inline GraphModule saved_and_loaded(const GraphModule& module) {
  GraphModule inlined = module;
  std::string bytes = graph_module_bytes(inlined);
  GraphModule once = parse_graph_module(bytes);
  EXPECT_EQ(graph_module_bytes(once), bytes);
  std::string path = ::testing::TempDir() + "weft_" + std::to_string(::getpid()) + ".graph";
  save_graph_module(once, path);
  GraphModule twice = load_graph_module(path);
  std::filesystem::remove(path);
  EXPECT_EQ(graph_module_bytes(twice), bytes);
  return twice;
}

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

// The sum of each result, weighted so that no two are alike.
inline Tensor weighted_sum(const std::vector<Tensor>& results) {
  Tensor total;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!takes_gradient(results[i])) continue;
    Tensor part = results[i].sum() * std::log(static_cast<double>(i + 2));
    total = total.defined() ? total + part : part;
  }
  return total;
}

// Traces f, saves and loads what came, and compares results, gradients and gradients of gradients with f's
// own.
template <typename F>
GraphModule check_trace(F f, const CheckTrace& options) {
  const Value& shown = options.inputs.is_none() ? options.reference : options.inputs;
  TraceOptions trace_options{.check_trace = false, .strict = false};
  trace_options.arg_names = options.arg_names;
  auto traced = trace(f, clone_inputs(options.reference), trace_options);
  GraphModule loaded = [&] {
    if constexpr (requires { traced.graph_module(); }) return saved_and_loaded(traced.graph_module());
    else return saved_and_loaded(traced.method("forward").graph_module());
  }();
  ValueFunction eager = [&] {
    if constexpr (requires { traced.original(); }) return traced.original();
    else return traced.method("forward").original();
  }();
  auto as_arguments = [](const Value& given) {
    return given.is_sequence() ? given.elements() : ValueList{given};
  };
  {
    Value mine = with_gradients(shown, false), theirs = with_gradients(shown, false);
    std::vector<Tensor> a = tensors_of(eager(as_arguments(mine)));
    std::vector<Tensor> b = tensors_of(loaded.call(as_arguments(theirs)));
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) EXPECT_TRUE(close(b[i], a[i], 1e-5, 1e-5));
  }
  if (!options.inputs_require_grads) return loaded;

  struct Derivatives {
    std::vector<Tensor> results, first, second;
  };
  auto differentiate = [&](const ValueFunction& run) {
    Derivatives d;
    Value given = with_gradients(shown, true);
    std::vector<Tensor> leaves;
    for (const Tensor& tensor : tensors_of(given))
      if (takes_gradient(tensor)) leaves.push_back(tensor);
    d.results = tensors_of(run(as_arguments(given)));
    std::vector<Tensor> counted(d.results.begin(), d.results.end() - static_cast<ptrdiff_t>(options.drop));
    Tensor loss = weighted_sum(counted);
    if (!loss.defined() || !loss.requires_grad()) return d;
    d.first =
        autograd::grad({loss}, leaves, {}, {.create_graph = true, .allow_unused = options.allow_unused});
    Tensor again;
    for (const Tensor& grad : d.first) {
      if (!grad.defined()) continue;
      Tensor part = grad.sum() * loss;
      again = again.defined() ? again + part : part;
    }
    if (again.defined() && again.requires_grad())
      d.second = autograd::grad({again}, leaves, {}, {.allow_unused = true});
    return d;
  };
  Derivatives mine = differentiate(eager);
  Derivatives theirs = differentiate(loaded.function());
  auto compare = [&](const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].defined(), b[i].defined()) << what << " " << i;
      if (a[i].defined())
        EXPECT_TRUE(close(b[i], a[i], options.tolerance, options.tolerance)) << what << " " << i;
    }
  };
  compare(mine.results, theirs.results, "result");
  compare(mine.first, theirs.first, "gradient");
  compare(mine.second, theirs.second, "second gradient");
  return loaded;
}

}  // namespace weft::testing
