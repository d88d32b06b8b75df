#pragma once

#include <memory>

#include "weft/aot/compile_cache.h"
#include "weft/aot/compiler.h"
#include "weft/aot/description.h"
#include "weft/aot/partition.h"
#include "weft/capture/make_graph.h"

namespace weft {

namespace aot {
// The decompositions of these operators; one that has none is left out.
Decompositions get_decompositions(const std::vector<std::string>& operators);
// Those of every operator that PyTorch's core table decomposes: what is left are operators of Core ATen
// (Traits::kCore) and those for which there is no decomposition.
const Decompositions& core_decompositions();
// Those of pointwise operators, which compilers want: gradients of activations as arithmetic.
const Decompositions& default_decompositions();
}  // namespace aot

struct AotOptions {
  // The first defaults to `aot::nop`, the others to the first.
  aot::Compiler forward_compiler = nullptr, backward_compiler = nullptr, inference_compiler = nullptr;
  aot::Partitioner partitioner = aot::default_partition;
  Decompositions decompositions = {};
  // Whether sizes are symbols, so that the graphs hold for other sizes.
  bool dynamic = false;
  // With it: how many of the first arguments' leaves keep sizes that are numbers. Of modules, their state.
  size_t num_params_buffers = 0;
  // Whether writes to inputs stay in the graph, as copy_ at its end, where autograd does not have to know.
  bool keep_inference_input_mutations = false;
  // Where graphs are looked for before they are traced: of programs that are graph modules themselves.
  // `strict_cache` makes it an error if the program cannot be kept there.
  std::shared_ptr<aot::CompileCache> cache = nullptr;
  bool strict_cache = false;
};

// A function whose forward and backward were captured, partitioned and compiled when it was first called. It
// does what the function does, to the last alias: writes to its arguments, returns views of them, and is
// differentiated through the compiled backward. Copies share the graphs.
class AotFunction {
 public:
  AotFunction(ValueFunction f, AotOptions options);
  // A function that runs `program`.
  AotFunction(ValueFunction f, const GraphModule& program, AotOptions options);

  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  Value call(Args args) const;
  Value call(std::initializer_list<Value> args) const { return call(Args(args.begin(), args.size())); }
  // Compiles it now, for arguments like these, which need no data.
  void compile_for(Args examples) const;
  // For captures and other compilers.
  ValueFunction function() const;

  // What a call does, and the steps around the graphs. An error before it is compiled.
  const aot::CallDescription& description() const;
  std::string explain() const;

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

// Compiles f when it is first called, for arguments like those of that call.
//
//   auto f = aot_function([](const Tensor& x) { return x.sin().cos(); }, {.forward_compiler = my_compiler});
//   f(x).sum().backward();
template <typename F>
AotFunction aot_function(F f, AotOptions options = {}) {
  if constexpr (std::is_same_v<F, GraphModule>) return AotFunction(f.function(), f, std::move(options));
  else return AotFunction(as_value_function(std::move(f)), std::move(options));
}

// A module whose call was compiled like a function of its parameters, its buffers and its arguments. A handle
// to the module: the parameters are the same.
class AotModule : public nn::Module {
 public:
  AotModule(const nn::Module& module, ValueFunction forward, AotOptions options);
  AotModule(const GraphModule& module, AotOptions options);

  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  Value call(Args args) const;
  Value call(std::initializer_list<Value> args) const { return call(Args(args.begin(), args.size())); }
  void compile_for(Args examples) const;
  const AotFunction& as_function() const { return function_; }

 private:
  ValueList with_state(Args args) const;
  AotFunction function_;
};

// Compiles the module's forward when it is first called.
template <typename M>
AotModule aot_module(const M& module, AotOptions options = {}) {
  if constexpr (std::is_same_v<M, GraphModule>) {
    return AotModule(module, std::move(options));
  } else {
    nn::note_class(*module.state(), typeid(M));
    Ref<Callable> call = nn::detail::erased_call(module);
    require(static_cast<bool>(call), "aot_module: the forward of {} takes or gives types that no Value holds",
            module.state()->class_name);
    return AotModule(module, [call](Args args) { return call->call(args); }, std::move(options));
  }
}

// The same, compiled now for arguments like `examples`, which need no data.
template <typename M>
AotModule aot_module_simplified(const M& module, const ValueList& examples, AotOptions options = {}) {
  AotModule compiled = aot_module(module, std::move(options));
  compiled.compile_for(examples);
  return compiled;
}

// functorch's names for the same: compilers by position.
template <typename F>
AotFunction compiled_function(F f, aot::Compiler forward, aot::Compiler backward = nullptr,
                              aot::Partitioner partitioner = aot::default_partition) {
  return aot_function(std::move(f), {.forward_compiler = std::move(forward),
                                     .backward_compiler = std::move(backward),
                                     .partitioner = std::move(partitioner)});
}
template <typename M>
AotModule compiled_module(const M& module, aot::Compiler forward, aot::Compiler backward = nullptr,
                          aot::Partitioner partitioner = aot::default_partition) {
  return aot_module(module, {.forward_compiler = std::move(forward),
                             .backward_compiler = std::move(backward),
                             .partitioner = std::move(partitioner)});
}
// Saves as little as possible between forward and backward: the options that functorch gives a fuser.
template <typename F>
auto memory_efficient_fusion(const F& f) {
  AotOptions options{.partitioner = aot::min_cut_partitioner(),
                     .decompositions = aot::default_decompositions()};
  if constexpr (std::is_base_of_v<nn::Module, F>) return aot_module(f, std::move(options));
  else return aot_function(f, std::move(options));
}

}  // namespace weft
