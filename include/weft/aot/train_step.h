#pragma once

#include <memory>

#include "weft/aot/compiler.h"
#include "weft/aot/partition.h"
#include "weft/capture/make_graph.h"
#include "weft/nn/optim.h"

namespace weft {

struct TrainStepOptions {
  // What runs the graph; `aot::nop`, the interpreter, if it is not said.
  aot::Compiler compiler = nullptr;
  // What the backward takes from the forward, and what it computes again when it needs it. By default nothing
  // is computed twice, as in eager mode; `aot::min_cut_partitioner()` trades time for memory.
  aot::Partitioner partitioner = aot::default_partition;
  Decompositions decompositions = {};
  // Whether the sizes of the batch are symbols, so that the graph holds for others. Those of the model never
  // are.
  bool dynamic = false;
  // Whether the momentum is an input like the learning rate, for schedules that move it (OneCycleLR).
  // Otherwise it is one of the optimizer's options that may not change, which takes a little less time.
  bool momentum_is_input = false;
};

namespace aot {
// What a step is to lower: a loss, or a tree whose first leaf is the loss, as a function of a batch.
struct TrainProgram {
  ValueFunction loss;
  // The names of the values of a batch of so many; none: batch_0, ...
  std::function<std::vector<std::string>(size_t)> batch_names = nullptr;
};
}  // namespace aot

// One step of training as one graph: forward, backward, and the optimizer's update. A call does what
//
//   optimizer.zero_grad();
//   Tensor loss = loss_function(model(x), y);
//   loss.backward();
//   optimizer.step();
//
// does to the parameters, the buffers, the optimizer's state and the random numbers, so that such steps,
// schedules of the learning rate and loaded states can be mixed with it; only `grad()` of the parameters is
// neither read nor written. Copies share the graph. The optimizer must outlive it.
class TrainStep {
 public:
  TrainStep(const nn::Module& model, aot::TrainProgram program, optim::Optimizer& optimizer,
            TrainStepOptions options);

  // Does a step; the loss, without history. Compiled at the first call, for batches of those types and sizes.
  template <typename... A>
  Tensor operator()(const A&... batch) const {
    return loss_in(call({to_value(batch)...}));
  }
  // The same, with all that the loss function returns. Of several values the first is the loss.
  Value call(Args batch) const;
  Value call(std::initializer_list<Value> batch) const { return call(Args(batch.begin(), batch.size())); }
  // Compiles it now, for batches like these, which need no data, and does no step.
  void compile_for(Args examples) const;
  void compile_for(std::initializer_list<Value> examples) const {
    compile_for(Args(examples.begin(), examples.size()));
  }

  // The graph. Its inputs are the parameters, the buffers, the batch, and of the optimizer the learning
  // rates, momenta, step counts and state; it writes to what changes, and gives what the loss function
  // returns. An error before it is compiled.
  const GraphModule& graph() const;
  // Forward and backward by themselves, before the update was added.
  const aot::Partition& partition() const;
  // The values of the forward that the backward uses, but for those that take no memory of their own:
  // parameters, buffers, the batch and views of them; and what it computes again.
  aot::SavedReport saved() const;
  // What the graph is made of, what it writes, and `saved`.
  std::string explain() const;

 private:
  static Tensor loss_in(const Value& result);
  struct Body;
  std::shared_ptr<Body> body_;
};

namespace aot::detail {

template <typename F>
struct LossSignature;
template <typename R, typename First, typename... Rest>
struct LossSignature<std::function<R(First, Rest...)>> {
  using Model = std::decay_t<First>;
  static constexpr size_t kTargets = sizeof...(Rest);
  // The loss of the model on a batch, as a function of the batch alone.
  template <typename M, typename L>
  static ValueFunction of_model(const M& model, const L& loss) {
    auto handle = std::make_shared<M>(model);
    return make_callable(std::function<R(Rest...)>(
        [handle, loss](Rest... batch) -> R { return loss(*handle, std::forward<Rest>(batch)...); }));
  }
};
template <typename R, typename M, typename... A>
std::function<R(A...)> signature_of_forward(R (M::*)(A...));
template <typename R, typename M, typename... A>
std::function<R(A...)> signature_of_forward(R (M::*)(A...) const);
template <typename L>
auto signature_of() {
  if constexpr (std::is_base_of_v<nn::Module, L>) return decltype(signature_of_forward(&L::forward))();
  else return decltype(std::function(std::declval<L>()))();
}

// The model's result and the targets, which are the last values of a batch, go to the loss.
TrainProgram program_of(Ref<Callable> model, ValueFunction loss, size_t targets);

}  // namespace aot::detail

// A training step of `model`. The loss is a function of what the model returns and of targets, or of the
// model itself and a batch:
//
//   auto step = aot_train_step(net, [](const Tensor& scores, const Tensor& y) { return cross_entropy(scores,
//   y); },
//                              optimizer);
//   Tensor loss = step(x, y);
//   auto other = aot_train_step(net, [](Net& net, const Tensor& x) { return net.elbo(x); }, optimizer);
template <typename M, typename L>
TrainStep aot_train_step(const M& model, const L& loss, optim::Optimizer& optimizer,
                         TrainStepOptions options = {}) {
  static_assert(std::is_base_of_v<nn::Module, M>, "a training step is of a module");
  using Signature = aot::detail::LossSignature<decltype(aot::detail::signature_of<L>())>;
  if constexpr (!std::is_same_v<M, GraphModule>) nn::note_class(*model.state(), typeid(M));
  if constexpr (std::is_base_of_v<nn::Module, typename Signature::Model> &&
                std::is_base_of_v<typename Signature::Model, M>) {
    return TrainStep(model, {Signature::of_model(model, loss)}, optimizer, std::move(options));
  } else {
    Ref<Callable> call = nn::detail::erased_call(model);
    require(static_cast<bool>(call),
            "aot_train_step: the forward of {} takes or gives types that no Value holds",
            model.state()->class_name);
    ValueFunction loss_function;
    if constexpr (std::is_base_of_v<nn::Module, L>)
      loss_function = [erased = nn::detail::erased_call(loss)](Args args) { return erased->call(args); };
    else loss_function = make_callable(loss);
    return TrainStep(model, aot::detail::program_of(call, std::move(loss_function), Signature::kTargets),
                     optimizer, std::move(options));
  }
}

}  // namespace weft
