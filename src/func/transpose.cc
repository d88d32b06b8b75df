#include "func/transpose.h"

namespace weft {

using func::Tensors;

Tensors transpose_pullback(FunctionRef<Tensors(const Tensors&)> pull, const Tensors& results,
                           const std::vector<bool>& carries, const Tensors& tangents) {
  Tensors zeros;
  for (size_t i = 0; i < results.size(); ++i)
    if (carries[i]) zeros.push_back(zeros_like(results[i]));
  // Of a list with an entry for each result, those that carry a gradient are what is differentiated.
  auto spread = [&](const Tensors& carried) {
    Tensors all(results.size());
    for (size_t i = 0, k = 0; i < results.size(); ++i)
      if (carries[i]) all[i] = carried[k++];
    return all;
  };
  std::vector<size_t> kept;
  auto of_gradients = [&](const Tensors& gradients) {
    Tensors flat = pull(spread(gradients)), defined;
    kept.clear();
    for (size_t i = 0; i < flat.size(); ++i)
      if (flat[i].defined() && tangents[i].defined()) {
        kept.push_back(i);
        defined.push_back(flat[i]);
      }
    return defined;
  };
  auto [grads, push] = func::vjp_of(of_gradients, zeros);
  // The tape would sum broadcast sizes and cast types, so the transpose expands and casts.
  Tensors fitted;
  for (size_t k = 0; k < kept.size(); ++k)
    fitted.push_back(expand(tangents[kept[k]], grads[k].sizes()).to(grads[k].dtype()));
  return spread(push(fitted));
}

}  // namespace weft
