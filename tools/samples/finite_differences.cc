#include "samples/finite_differences.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/autograd/autograd.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/operators.h"

namespace weft::recorded {

Tensor cotangent_for(const Tensor& result) {
  Tensor cotangent = allocate_contiguous(result.sizes(), result.dtype());
  visit_dtype(result.dtype(), [&]<typename T>() {
    T* data = cotangent.data<T>();
    for (int64_t i = 0; i < cotangent.plain_numel(); ++i) {
      double re = static_cast<double>((7 * i + 3) % 11 - 5) / 4,
             im = static_cast<double>((5 * i + 1) % 7 - 3) / 4;
      if constexpr (dtype_of<T> >= DType::kComplex64) data[i] = T(Complex<double>(re, im));
      else data[i] = T(static_cast<float>(re));
    }
  });
  return cotangent;
}

namespace {

constexpr double kStep = 1e-6, kRelative = 1e-4, kAbsolute = 1e-5;

// The call in double precision, with contiguous copies of the tensors.
class WideCall {
 public:
  WideCall(const Operator& op, const Arguments& arguments, std::vector<size_t> results)
      : op_(op), results_(std::move(results)) {
    GradModeScope no_grad(false);
    for (const Value& value : arguments.values) values_.push_back(widened(value));
  }

  const std::vector<Tensor>& leaves() const { return leaves_; }
  Value result() const {
    GradModeScope no_grad(false);
    return call(op_, values_);
  }

  std::vector<Tensor> gradients() const {
    for (const Tensor& leaf : leaves_) leaf.set_requires_grad();
    std::vector<Tensor> outputs, cotangents;
    for (const Tensor& result : run()) {
      if (!result.requires_grad()) continue;
      outputs.push_back(result);
      cotangents.push_back(cotangent_for(result));
    }
    std::vector<Tensor> grads(leaves_.size());
    if (!outputs.empty()) grads = autograd::grad(outputs, leaves_, cotangents, {.allow_unused = true});
    for (const Tensor& leaf : leaves_) leaf.set_requires_grad(false);
    return grads;
  }

  // The results times their cotangents.
  double objective() const {
    GradModeScope no_grad(false);
    double total = 0;
    for (const Tensor& result : run()) {
      Tensor values = parts_of(result), weights = parts_of(cotangent_for(result));
      for (int64_t i = 0; i < values.plain_numel(); ++i)
        total += values.data<double>()[i] * weights.data<double>()[i];
    }
    return total;
  }

  // A contiguous copy as real numbers: two for each complex one.
  static Tensor parts_of(const Tensor& tensor) {
    GradModeScope no_grad(false);
    Tensor plain = tensor.detach().resolve_conj().resolve_neg().contiguous();
    return is_complex(plain.dtype()) ? view_as_real(plain).to(kFloat64).contiguous()
                                     : plain.to(kFloat64).contiguous();
  }

 private:
  Value widened(const Value& value) {
    if (value.is_sequence()) {
      ValueList elements;
      for (const Value& element : value.elements()) elements.push_back(widened(element));
      return Value::list(std::move(elements));
    }
    if (!value.is_tensor() || !value.tensor_ref().defined()) return value;
    const Tensor& tensor = value.tensor_ref();
    if (!is_differentiable(tensor.dtype())) return tensor.clone();
    Tensor wide = empty(tensor.sizes(), is_complex(tensor.dtype()) ? kComplex128 : kFloat64).copy_(tensor);
    leaves_.push_back(wide);
    return wide;
  }

  std::vector<Tensor> run() const {
    Value result = call(op_, values_);
    std::vector<Tensor> wanted;
    for (size_t i : results_) {
      const Value& own = result.is_sequence() ? result.elements().at(i) : result;
      if (own.is_tensor() && own.tensor_ref().defined()) wanted.push_back(own.tensor_ref());
    }
    return wanted;
  }

  const Operator& op_;
  const std::vector<size_t> results_;
  ValueList values_;
  std::vector<Tensor> leaves_;
};

}  // namespace

std::vector<Value> wide_results(const Operator& op, const Arguments& arguments) {
  Value result = WideCall(op, arguments, {}).result();
  return result.is_sequence() ? result.elements() : std::vector<Value>{result};
}
std::vector<Tensor> wide_gradients(const Operator& op, const Arguments& arguments,
                                   const std::vector<size_t>& results) {
  return WideCall(op, arguments, results).gradients();
}

std::optional<std::string> finite_difference_mismatch(const Operator& op, const Arguments& arguments,
                                                      const std::vector<size_t>& results) {
  WideCall wide(op, arguments, results);
  std::vector<Tensor> grads = wide.gradients();
  for (size_t k = 0; k < grads.size(); ++k) {
    const Tensor& leaf = wide.leaves()[k];
    auto* data = static_cast<double*>(leaf.raw_data());
    Tensor analytic = grads[k].defined() ? WideCall::parts_of(grads[k]) : Tensor();
    const int64_t parts = leaf.plain_numel() * (is_complex(leaf.dtype()) ? 2 : 1);
    for (int64_t i = 0; i < parts; ++i) {
      const double at = data[i];
      data[i] = at + kStep;
      const double above = wide.objective();
      data[i] = at - kStep;
      const double numeric = (above - wide.objective()) / (2 * kStep);
      data[i] = at;
      const double got = analytic.defined() ? analytic.data<double>()[i] : 0;
      if (std::isfinite(numeric) && !(std::abs(got - numeric) <= kAbsolute + kRelative * std::abs(numeric)))
        return fmt::format("the gradient of tensor {} at element {} is {}, but finite differences give {}", k,
                           i, got, numeric);
    }
  }
  return std::nullopt;
}

}  // namespace weft::recorded
