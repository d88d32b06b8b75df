// Jacobians: all rows by one batched pullback (jacrev), or all columns by one batched pushforward (jacfwd).
#include "func/level.h"
#include "weft/base/error.h"
#include "weft/func/func.h"

namespace weft::func {
namespace {

// One-hot directions for every element of `like`: [numel, sizes...].
Tensor basis(const Tensor& like) {
  SymInt n = like.numel();
  Tensor flat = zeros({n * n}, like.dtype(), std::nullopt, like.device());
  fill_(as_strided(flat, {n}, {n + 1}), 1);
  SymInts sizes{n};
  for (const SymInt& size : like.sizes()) sizes.push_back(size);
  return view(flat, sizes);
}

SymInts joined(SymIntSpan a, SymIntSpan b) {
  SymInts all(a);
  for (const SymInt& size : b) all.push_back(size);
  return all;
}

}  // namespace

Transformed jacrev_of(Fn f, int argnum) {
  return Transformed([f = std::move(f), argnum](const Tensors& args) {
    const size_t at = detail::argument_at("jacrev", argnum, args.size());
    detail::require_differentiable("jacrev", {args[at]});
    auto of_one = [&](const Tensors& chosen, const Tensors& others) {
      Tensors all = others;
      all[at] = chosen[0];
      return f(all);
    };
    Tensors others = args;
    others[at] = Tensor();
    auto [results, pull] = vjp_with_others(of_one, {args[at]}, others);
    for (const Tensor& result : results)
      require(is_differentiable(result.dtype()),
              "jacrev: all outputs of f must be floating-point or complex Tensors, got {}", describe(result));
    Tensors jacobians;
    for (size_t r = 0; r < results.size(); ++r) {
      Fn row = [&pull = pull, &results = results, r](const Tensors& direction) {
        Tensors gradients(results.size());
        gradients[r] = direction[0];
        return pull(gradients);
      };
      Tensor rows = vmap_of(row, {}).fn()({basis(results[r])})[0];
      jacobians.push_back(reshape(rows, joined(results[r].sizes(), args[at].sizes())));
    }
    return jacobians;
  });
}

Transformed jacfwd_of(Fn f, int argnum) {
  return Transformed([f = std::move(f), argnum](const Tensors& args) {
    const size_t at = detail::argument_at("jacfwd", argnum, args.size());
    detail::require_differentiable("jacfwd", {args[at]});
    Fn column = [&](const Tensors& direction) {
      Fn of_one = [&](const Tensors& chosen) {
        Tensors all = args;
        all[at] = chosen[0];
        return f(all);
      };
      return jvp_of(of_one, {args[at]}, direction).second;
    };
    // Each column is a result-shaped tensor; the mapped dim goes last and becomes the argument's sizes.
    Tensors columns = vmap_of(column, {}).fn()({basis(args[at])});
    Tensors jacobians;
    for (const Tensor& stacked : columns) {
      Tensor last = movedim(stacked, 0, -1);
      SymIntSpan sizes = last.sizes();
      jacobians.push_back(reshape(
          last, joined(SymIntSpan(ListSpan<SymInt>(sizes.data(), sizes.size() - 1)), args[at].sizes())));
    }
    return jacobians;
  });
}

}  // namespace weft::func
