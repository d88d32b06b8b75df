// Reverse mode: a level that is the autograd layer, working on wrappers of its own.
#include <algorithm>

#include "autograd/engine.h"
#include "autograd/record.h"
#include "dispatch/inplace_view.h"
#include "func/level.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"

namespace weft {
namespace {

class GradLevel final : public Level {
 public:
  bool owns_grad_mode() const override { return true; }
  bool sees_everything() const override {
    return true;
  }  // what is made inside may be written to with a history
  const char* name() const override { return "grad"; }

  Value handle(const Operator& op, Args args) override {
    refuse_foreign_writes(op, args);
    return autograd::record_call(op, args, [&](Args own) { return call_below(op, own); });
  }

 private:
  Value call_below(const Operator& op, Args args) {
    std::vector<Value> inner = map_tensors(args, [&](const Tensor& t) {
      LevelBox* box = box_at(t, *this);
      return Value(box ? box->value : t);
    });
    const dispatch::InplaceView view(op, args);
    Value result;
    {
      BelowLevel below(*this);
      result = dispatch::redispatch(op, inner);
    }
    refresh_written(op, args);
    view.done();
    Ref<Level> self(this);
    Value wrapped = wrap_results(op, args, result, [&](const Tensor& t) { return Value(wrap_at(self, t)); });
    dispatch::note_views(op, args, wrapped);
    return wrapped;
  }

  void refresh_written(const Operator& op, Args args) {
    const auto& written = op.info().written;
    for (size_t i = 0; i < args.size(); ++i)
      if (written[i] && args[i].is_tensor() && box_at(args[i].tensor_ref(), *this))
        refresh_wrapper(args[i].tensor_ref());
  }

  // Writing a result that is being differentiated into a tensor from outside would lose its history.
  void refuse_foreign_writes(const Operator& op, Args args) {
    const auto& written = op.info().written;
    for (size_t i = 0; i < args.size(); ++i)
      require(!(written[i] && args[i].is_tensor() && !is_writable_at(args[i].tensor_ref(), *this)),
              "{}: a function under grad writes in place to a tensor that was made outside of it; its "
              "gradient would be lost. "
              "Return the new value instead, or make the tensor inside the function",
              op.name());
  }
};

}  // namespace

namespace func {

size_t detail::argument_at(const char* what, int argnum, size_t count) {
  const int all = static_cast<int>(count);
  require(argnum >= -all && argnum < all, "{}: Got argnum={}, but only {} positional inputs", what, argnum,
          count);
  return static_cast<size_t>(argnum < 0 ? argnum + all : argnum);
}

void detail::require_differentiable(const char* what, const Tensors& inputs) {
  for (const Tensor& input : inputs)
    require(is_differentiable(input.dtype()),
            "{}: only Tensors of floating point dtype can require gradients, but got {}", what,
            describe(input));
}

std::function<Value(Args)> Pullback::function() const {
  return [pull = *this](Args args) {
    size_t count = 0;
    while (count < args.size() && args[count].is_tensor()) ++count;
    const Args rest = args.subspan(count);
    require(
        rest.size() <= 2 && std::all_of(rest.begin(), rest.end(), [](const Value& v) { return v.is_bool(); }),
        "vjp: expected gradients, then up to two bools (retain_graph, create_graph), but got {} arguments of "
        "which the first {} are tensors",
        args.size(), count);
    Tensors gradients;
    for (const Value& gradient : args.first(count)) gradients.push_back(gradient.to_tensor());
    const bool retain_graph = rest.empty() || rest[0].to_bool();
    const std::optional<bool> create_graph =
        rest.size() < 2 ? std::nullopt : std::optional<bool>(rest[1].to_bool());
    const Tensors found = pull(gradients, retain_graph, create_graph);
    return found.size() == 1 ? Value(found[0]) : Value::tuple({found.begin(), found.end()});
  };
}

std::pair<Tensors, Pullback> vjp_with_others(const FnOfBoth& f, const Tensors& inputs,
                                             const Tensors& others) {
  Tensors wrapped_inputs, wrapped_others, wrapped_results, results;
  {
    LevelEntry entry(make_ref<GradLevel>());
    const LevelLiterals literals(entry.level());
    for (const Tensor& input : inputs) {
      Tensor wrapped = wrap_at(entry.level(), input);
      if (is_differentiable(wrapped.dtype())) wrapped.set_requires_grad();
      wrapped_inputs.push_back(wrapped);
    }
    for (const Tensor& other : others)
      wrapped_others.push_back(other.defined() ? wrap_at(entry.level(), other) : other);
    wrapped_results = f(wrapped_inputs, wrapped_others);
    for (const Tensor& result : wrapped_results) {
      LevelBox* box = box_at(result, *entry.level());
      results.push_back(box ? box->value : result);
    }
  }
  Pullback pull([wrapped_inputs, wrapped_results](const Tensors& gradients, bool retain_graph,
                                                  std::optional<bool> create_graph) {
    require(gradients.size() == wrapped_results.size(), "vjp: {} gradients for {} results", gradients.size(),
            wrapped_results.size());
    // The tape's tensors are wrappers, also where a layer below the levels calls this.
    LayerStateScope saved;
    layer_state().mask |= layer::kLevels;
    std::optional<GradModeScope> grad_mode;
    if (create_graph) grad_mode.emplace(*create_graph);
    autograd::BackwardRun run;
    run.retain_graph = retain_graph;
    run.inherit_state = true;
    for (size_t i = 0; i < gradients.size(); ++i) {
      require(!gradients[i].defined() || may_be_same_sizes(gradients[i].sizes(), wrapped_results[i].sizes()),
              "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", i,
              describe_sizes(gradients[i].sizes()), i, describe_sizes(wrapped_results[i].sizes()));
      if (!wrapped_results[i].requires_grad() || !gradients[i].defined()) continue;
      run.roots.push_back(autograd::gradient_edge(wrapped_results[i]));
      run.gradients.push_back(gradients[i]);
    }
    for (const Tensor& input : wrapped_inputs) run.inputs.push_back(autograd::gradient_edge(input));
    Tensors grads = autograd::run_backward(run);
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined() && is_differentiable(wrapped_inputs[i].dtype()))
        grads[i] = zeros_like(wrapped_inputs[i]);
    return grads;
  });
  return {results, pull};
}

std::pair<Tensors, Pullback> vjp_of(const Fn& f, const Tensors& inputs) {
  return vjp_with_others([&](const Tensors& own, const Tensors&) { return f(own); }, inputs, {});
}

namespace {

// Which arguments are meant, counted from the front.
std::vector<int> indices_of(const std::vector<int>& argnums, size_t count) {
  require(!argnums.empty(), "grad: argnums must be non-empty");
  std::vector<int> indices;
  for (int argnum : argnums) {
    indices.push_back(static_cast<int>(detail::argument_at("grad", argnum, count)));
    require(std::count(indices.begin(), indices.end(), indices.back()) == 1,
            "grad: argnums elements must be unique, but argument {} is there twice", argnum);
  }
  return indices;
}

std::pair<Tensors, Tensors> value_and_gradients(const Fn& f, const Tensors& args,
                                                const std::vector<int>& argnums) {
  const std::vector<int> indices = indices_of(argnums, args.size());
  Tensors chosen;
  for (int index : indices) chosen.push_back(args[static_cast<size_t>(index)]);
  detail::require_differentiable("grad", chosen);
  Tensors others = args;
  for (int index : indices) others[static_cast<size_t>(index)] = Tensor();
  auto of_all = [&](const Tensors& own, const Tensors& fixed) {
    Tensors all = fixed;
    for (size_t i = 0; i < indices.size(); ++i) all[static_cast<size_t>(indices[i])] = own[i];
    return f(all);
  };
  auto [results, pull] = vjp_with_others(of_all, chosen, others);
  require(results.size() == 1, "grad: expected a function of one result, but it gave {}", results.size());
  require(guard_or(results[0].numel() == 1, true) && results[0].dim() == 0,
          "grad: expected the function to return a scalar tensor, but it gave {}; sum it, or use vjp",
          describe(results[0]));
  require(!is_complex(results[0].dtype()),
          "grad can be implicitly created only for real scalar outputs but got {}; use vjp",
          describe(results[0]));
  Tensor one = ones_like(results[0], std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                         MemoryFormat::kPreserve);
  return {results, pull({one})};
}

}  // namespace

Transformed grad_of(Fn f, std::vector<int> argnums) {
  return Transformed([f = std::move(f), argnums = std::move(argnums)](const Tensors& args) {
    return value_and_gradients(f, args, argnums).second;
  });
}

Transformed value_and_grad_of(Fn f, std::vector<int> argnums) {
  return Transformed([f = std::move(f), argnums = std::move(argnums)](const Tensors& args) {
    auto [value, grads] = value_and_gradients(f, args, argnums);
    value.insert(value.end(), grads.begin(), grads.end());
    return value;
  });
}
Transformed grad_and_value_of(Fn f, std::vector<int> argnums) {
  return Transformed([f = std::move(f), argnums = std::move(argnums)](const Tensors& args) {
    auto [value, grads] = value_and_gradients(f, args, argnums);
    grads.insert(grads.end(), value.begin(), value.end());
    return grads;
  });
}

Tensor Transformed::only(Tensors results) {
  require(results.size() == 1,
          "this function gives {} results; call it with a vector of tensors to get them all", results.size());
  return results[0];
}

}  // namespace func
}  // namespace weft
