// Gradients of the operators over functions: each is a custom function whose backward is such an operator
// again, over the pullbacks of the functions.
#include "func/control_flow_rules.h"
#include "weft/autograd/function.h"
#include "weft/base/error.h"
#include "weft/func/func.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using namespace flow;
using autograd::FunctionContext;
using func::Tensors;

bool is_differentiable_tensor(const Value& value) {
  return value.is_tensor() && is_differentiable(value.tensor_ref().dtype());
}
size_t count_differentiable(const ValueList& values) {
  return static_cast<size_t>(std::count_if(values.begin(), values.end(), is_differentiable_tensor));
}

// leaves, then one gradient for each result that has one, to one gradient for each differentiable leaf.
// Without `has_gradient` every differentiable result has one.
ValueFunction pullback_of(Ref<Callable> f, size_t leaf_count, std::vector<bool> has_gradient = {}) {
  return [f, leaf_count, has_gradient](Args args) {
    ValueList leaves(args.begin(), args.begin() + static_cast<ptrdiff_t>(leaf_count));
    Tensors primals, grads;
    for (const Value& leaf : leaves)
      if (is_differentiable_tensor(leaf)) primals.push_back(leaf.to_tensor());
    for (const Value& grad : args.subspan(leaf_count)) grads.push_back(grad.to_tensor());
    auto on_primals = [&](const Tensors& own) {
      ValueList all = leaves;
      size_t next = 0;
      for (Value& leaf : all)
        if (is_differentiable_tensor(leaf)) leaf = own[next++];
      While scope([] {
        return "differentiating a function of control flow: one that writes to its operand has no gradient; "
               "let it "
               "return the new value instead";
      });
      Tensors results;
      Value returned = as_tuple(f->call(all));
      for (size_t i = 0; i < returned.elements().size(); ++i) {
        const Value& result = returned.elements()[i];
        if (has_gradient.empty() ? is_differentiable_tensor(result) : has_gradient[i])
          results.push_back(result.to_tensor());
      }
      return results;
    };
    auto [results, pull] = func::vjp_of(on_primals, primals);
    Tensors found = pull(grads);
    ValueList gradients;
    for (size_t i = 0; i < primals.size(); ++i)
      gradients.emplace_back(found[i].defined() ? found[i] : zeros_like(primals[i]));
    return Value::tuple(std::move(gradients));
  };
}

// Results as tensors, which are all that a custom function gives.
Tensors tensors_of(const Value& results, std::string_view what) {
  Tensors tensors;
  for (const Value& result : results.elements()) {
    require(result.is_tensor(), "{}: its functions must give tensors to be differentiated, but one gives {}",
            what, result.kind_name());
    tensors.push_back(result.to_tensor());
  }
  return tensors;
}

ValueList differentiable_grads(const Tensors& grads) {
  ValueList values;
  for (const Tensor& grad : grads)
    if (grad.defined() && is_differentiable(grad.dtype())) values.emplace_back(grad);
  return values;
}

// One gradient for each tensor among the leaves, from those of the differentiable ones.
Tensors spread(const ValueList& leaves, const ValueList& gradients) {
  Tensors all;
  size_t next = 0;
  for (const Value& leaf : leaves) {
    if (!leaf.is_tensor()) continue;
    all.push_back(is_differentiable_tensor(leaf) ? gradients[next++].to_tensor() : Tensor());
  }
  return all;
}

Value tuple_of(const Tensors& tensors) { return Value::tuple({tensors.begin(), tensors.end()}); }

Tensor or_zeros(const Tensor& grad, const Value& like) {
  return grad.defined() ? grad : zeros_like(like.to_tensor());
}

// A gradient for each differentiable one of `values`, zero where there is none.
ValueList grads_or_zeros(const ValueList& values, std::span<const Tensor> grads) {
  ValueList all;
  for (size_t i = 0; i < values.size(); ++i)
    if (is_differentiable_tensor(values[i])) all.emplace_back(or_zeros(grads[i], values[i]));
  return all;
}
ValueList zeros_for(const ValueList& values) {
  ValueList zeros;
  for (const Value& value : values)
    if (is_differentiable_tensor(value)) zeros.emplace_back(zeros_like(value.to_tensor()));
  return zeros;
}

ValueList sums(const ValueList& a, const ValueList& b) {
  ValueList all;
  for (size_t i = 0; i < a.size(); ++i) all.emplace_back(a[i].to_tensor() + b[i].to_tensor());
  return all;
}

// The leaves of an operator, cut into the lists that it takes.
struct Operands {
  ValueList lists[3];

  ValueList all() const { return joined(joined(lists[0], lists[1]), lists[2]); }
  Operands with(std::span<const Tensor> tensors) const {
    ValueList replaced = with_tensors(all(), tensors);
    size_t begin = 0;
    Operands other;
    for (size_t i = 0; i < 3; begin += lists[i++].size())
      other.lists[i] = part(replaced, begin, lists[i].size());
    return other;
  }
};

// --- cond ------------------------------------------------------------------------------------------------

struct CondFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "Cond"; }
  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    ctx.save_for_backward(tensors);
    auto [pred, operands] = split(tensors);
    return tensors_of(call(cond_operator(), {pred, on_true, on_false, Value::list(operands)}), "cond");
  }
  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    auto [pred, operands] = split(ctx.saved_tensors());
    auto pull = [&](const Value& branch) {
      return callable_value(pullback_of(Ref<Callable>(callable_in(branch)), operands.size()));
    };
    Value gradients = call(cond_operator(), {pred, pull(on_true), pull(on_false),
                                             Value::list(joined(operands, differentiable_grads(grads)))});
    return spread(leaves, gradients.elements());
  }
  std::pair<Value, ValueList> split(const Tensors& tensors) const {
    ValueList all = with_tensors(leaves, tensors);
    return {all[0], {all.begin() + 1, all.end()}};
  }

  Value on_true, on_false;
  ValueList leaves;  // the condition, then the operands
};

// --- map -------------------------------------------------------------------------------------------------

struct MapFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "Map"; }
  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    ctx.save_for_backward(tensors);
    Operands own = operands.with(tensors);
    return tensors_of(call(map_operator(), {body, Value::list(own.lists[0]), Value::list(own.lists[1])}),
                      "map");
  }
  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    Operands own = operands.with(ctx.saved_tensors());
    const ValueList &xs = own.lists[0], &args = own.lists[1];
    ValueList incoming = differentiable_grads(grads);
    // The body's leaves are a slice of each x, then the arguments; its gradients follow the slices.
    size_t sliced = xs.size(), fixed = args.size(), gradients = incoming.size();
    ValueFunction pull = pullback_of(Ref<Callable>(callable_in(body)), sliced + fixed);
    auto step = [=](Args leaves) {
      return pull(joined(joined(part(leaves, 0, sliced), part(leaves, sliced + gradients, fixed)),
                         part(leaves, sliced, gradients)));
    };
    Value found =
        call(map_operator(), {callable_value(step), Value::list(joined(xs, incoming)), Value::list(args)});
    // What an argument got in each slice is added up.
    ValueList all = own.all(), summed;
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_differentiable_tensor(all[i])) continue;
      Tensor gradient = found.elements()[next++].to_tensor();
      summed.emplace_back(i < sliced ? gradient : gradient.sum({0}));
    }
    return spread(all, summed);
  }

  Value body;
  Operands operands;  // xs, arguments
};

// --- scan ------------------------------------------------------------------------------------------------

ValueList flipped(const ValueList& values) {
  ValueList all;
  for (const Value& value : values) all.emplace_back(flip(value.to_tensor(), {0}));
  return all;
}
ValueList defined_among(std::span<const Tensor> tensors) {
  ValueList all;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) all.emplace_back(tensor);
  return all;
}

// Keeps what was carried into each step, as further results so that second derivatives pass through them.
// Backward goes over the steps from the last to the first: it carries the gradients of what was carried and
// the sums of those of the arguments, and gives those of the xs.
struct ScanFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "Scan"; }

  // The body's results, then what was carried into it.
  Value keeping_body() const {
    return callable_value([f = Ref<Callable>(callable_in(body)), n = operands.lists[0].size()](Args leaves) {
      return Value::tuple(joined(as_tuple(f->call(leaves)).elements(), part(leaves, 0, n)));
    });
  }

  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    Operands own = operands.with(tensors);
    for (const Value& carried : own.lists[0])
      require(carried.is_tensor(),
              "scan: what it carries must be tensors to be differentiated, but one is {}",
              carried.kind_name());
    Value all = call(scan_operator(), {keeping_body(), Value::list(own.lists[0]), Value::list(own.lists[1]),
                                       Value::list(own.lists[2])});
    Tensors results = tensors_of(all, "scan"), saved = tensors;
    saved.insert(saved.end(), results.end() - static_cast<ptrdiff_t>(own.lists[0].size()), results.end());
    ctx.save_for_backward(saved);
    ctx.set_materialize_grads(false);
    return results;
  }

  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    Tensors saved = ctx.saved_tensors();
    size_t carried = operands.lists[0].size(), given = saved.size() - carried;
    Operands own = operands.with(std::span(saved).first(given));
    const ValueList &init = own.lists[0], &xs = own.lists[1], &args = own.lists[2];
    ValueList carries(saved.begin() + static_cast<ptrdiff_t>(given), saved.end());
    std::span<const Tensor> of_carry = std::span(grads).first(carried),
                            of_steps = std::span(grads).subspan(carried);

    std::vector<bool> has_gradient;
    for (const Value& value : init) has_gradient.push_back(is_differentiable_tensor(value));
    for (const Tensor& grad : of_steps) has_gradient.push_back(grad.defined());
    ValueFunction pull = pullback_of(Ref<Callable>(callable_in(keeping_body())),
                                     carried + xs.size() + args.size(), has_gradient);
    ValueList incoming = defined_among(of_steps);
    size_t grad_carries = count_differentiable(init), grad_xs = count_differentiable(xs),
           grad_args = count_differentiable(args), sliced = carried + xs.size(), steps = incoming.size(),
           fixed = args.size();
    auto step = [=](Args leaves) {
      size_t at = grad_carries + grad_args;
      ValueList primals = joined(part(leaves, at, sliced), part(leaves, at + sliced + steps, fixed));
      ValueList found =
          pull(joined(joined(primals, part(leaves, 0, grad_carries)), part(leaves, at + sliced, steps)))
              .elements();
      ValueList added =
          sums(part(leaves, grad_carries, grad_args), part(found, grad_carries + grad_xs, grad_args));
      return Value::tuple(
          joined(joined(part(found, 0, grad_carries), added), part(found, grad_carries, grad_xs)));
    };
    ValueList found =
        call(scan_operator(),
             {callable_value(step), Value::list(joined(grads_or_zeros(init, of_carry), zeros_for(args))),
              Value::list(flipped(joined(joined(carries, xs), incoming))), Value::list(args)})
            .elements();
    size_t first_x = grad_carries + grad_args;
    ValueList ordered = joined(joined(part(found, 0, grad_carries), flipped(part(found, first_x, grad_xs))),
                               part(found, grad_carries, grad_args));
    return spread(own.all(), ordered);
  }

  Value body;
  Operands operands;  // init, xs, arguments
};

// --- while_loop ------------------------------------------------------------------------------------------

// With the entry for what was before the first iteration in front.
Tensor after(const Tensor& first, const Tensor& iterations) { return cat({first.unsqueeze(0), iterations}); }
// Under vmap examples that have ended iterate with the others, beyond the first iteration: nobody takes what
// they get there.
Tensor at_iteration(const Value& iterations, const Tensor& iteration) {
  return index_select(iterations.to_tensor(), 0, iteration.clamp_min(0).reshape({1})).squeeze(0);
}

// The trip count is known when the loop has ended: a counter is carried along, and what every iteration
// gave is kept, in results of their own so that second derivatives pass through them. Backward counts down.
struct WhileFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "WhileLoop"; }

  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    Operands own = operands.with(tensors);
    for (const Value& carried : own.lists[0])
      require(carried.is_tensor(),
              "while_loop: what it carries must be tensors to be differentiated, but one is {}",
              carried.kind_name());
    auto counted_condition = [f = Ref<Callable>(callable_in(condition))](Args leaves) {
      return f->call(leaves.subspan(1));
    };
    auto counted_body = [f = Ref<Callable>(callable_in(body))](Args leaves) {
      return Value::tuple(
          joined({leaves[0].to_tensor() + 1}, as_tuple(f->call(leaves.subspan(1))).elements()));
    };
    Tensor none = zeros(SymIntSpan(), kInt64);
    Value iterations = call(stacked_while_operator(),
                            {callable_value(counted_condition), callable_value(counted_body),
                             Value::list(joined({none}, own.lists[0])), Value::list(own.lists[1])});
    Tensors stacks = tensors_of(iterations, "while_loop"), results;
    for (size_t i = 1; i < stacks.size(); ++i) results.push_back(stacks[i].select(0, -1).clone());
    results.push_back(stacks[0].select(0, -1).clone());
    results.insert(results.end(), stacks.begin() + 1, stacks.end());
    Tensors saved = tensors;
    saved.insert(saved.end(), results.begin() + static_cast<ptrdiff_t>(stacks.size() - 1), results.end());
    ctx.save_for_backward(saved);
    ctx.set_materialize_grads(false);
    return results;
  }

  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    Tensors saved = ctx.saved_tensors();
    size_t carried = operands.lists[0].size(), given = saved.size() - carried - 1;
    Operands own = operands.with(std::span(saved).first(given));
    const ValueList &init = own.lists[0], &args = own.lists[1];
    const Tensor& count = saved[given];
    // Entry k of a history is what was carried into iteration k, and its gradient what came from outside for
    // it.
    ValueList histories, given_grads, last;
    std::vector<bool> is_given;
    for (size_t i = 0; i < carried; ++i) {
      const Tensor &stack = saved[given + 1 + i], &grad = grads[carried + 1 + i];
      histories.emplace_back(after(init[i].to_tensor(), stack));
      if (!is_differentiable_tensor(init[i])) continue;
      Tensor final_grad = or_zeros(grads[i], init[i]);
      last.emplace_back(grad.defined() ? final_grad + grad.select(0, -1) : final_grad);
      is_given.push_back(grad.defined());
      if (grad.defined()) given_grads.emplace_back(after(zeros_like(init[i].to_tensor()), grad));
    }
    ValueFunction pull = pullback_of(Ref<Callable>(callable_in(body)), carried + args.size());
    size_t grad_carries = last.size(), grad_args = count_differentiable(args), fixed = args.size();
    auto more = [](Args leaves) { return Value(leaves[0].to_tensor() > 0); };
    auto step = [=](Args leaves) {
      Tensor k = leaves[0].to_tensor() - 1;
      size_t at = 1 + grad_carries + grad_args;
      ValueList primals;
      for (const Value& history : part(leaves, at, carried)) primals.emplace_back(at_iteration(history, k));
      primals = joined(primals, part(leaves, at + carried, fixed));
      ValueList found = pull(joined(primals, part(leaves, 1, grad_carries))).elements();
      ValueList next{k};
      size_t outside = at + carried + fixed;
      for (size_t i = 0; i < grad_carries; ++i)
        next.emplace_back(is_given[i] ? Value(found[i].to_tensor() + at_iteration(leaves[outside++], k))
                                      : found[i]);
      return Value::tuple(joined(
          next, sums(part(leaves, 1 + grad_carries, grad_args), part(found, grad_carries, grad_args))));
    };
    ValueList found = call(while_operator(), {callable_value(more), callable_value(step),
                                              Value::list(joined(joined({count}, last), zeros_for(args))),
                                              Value::list(joined(joined(histories, args), given_grads))})
                          .elements();
    return spread(own.all(), part(found, 1, grad_carries + grad_args));
  }

  Value condition, body;
  Operands operands;  // carried, arguments
};

}  // namespace

Value differentiate_cond(Args args) {
  auto function = make_ref<CondFunction>();
  function->on_true = args[1];
  function->on_false = args[2];
  function->leaves = joined({args[0]}, list_at(args, 3));
  return tuple_of(autograd::apply_function(function, tensors_among(function->leaves)));
}

Value differentiate_map(Args args) {
  auto function = make_ref<MapFunction>();
  function->body = args[0];
  function->operands = {{list_at(args, 1), list_at(args, 2), {}}};
  return tuple_of(autograd::apply_function(function, tensors_among(function->operands.all())));
}

Value differentiate_scan(Args args) {
  auto function = make_ref<ScanFunction>();
  function->body = args[0];
  function->operands = {{list_at(args, 1), list_at(args, 2), list_at(args, 3)}};
  Tensors results = autograd::apply_function(function, tensors_among(function->operands.all()));
  results.resize(results.size() - list_at(args, 1).size());
  return tuple_of(results);
}

Value differentiate_while(Args args) {
  auto function = make_ref<WhileFunction>();
  function->condition = args[0];
  function->body = args[1];
  function->operands = {{list_at(args, 2), list_at(args, 3), {}}};
  Tensors results = autograd::apply_function(function, tensors_among(function->operands.all()));
  results.resize(list_at(args, 2).size());
  return tuple_of(results);
}

}  // namespace weft
