#pragma once

#include <optional>

#include "weft/nn/activations.h"
#include "weft/nn/functional.h"
#include "weft/nn/module.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/recurrent.h"
#include "weft/nn/spatial.h"

// The layers: those of networks in general here, the others in the headers above.

namespace weft::nn {

struct LinearOptions {
  bool bias = true;
  DType dtype = DType::kFloat32;  // of the parameters; complex types too
};
// y = x W^T + b, W of [out, in].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, LinearOptions options = {});
  Tensor forward(const Tensor& x) { return linear(x, weight, bias); }
  WEFT_ARGS(input)
  Tensor weight, bias;
};

struct ConvOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};
// Of [N, C, L] or [C, L].
class Conv1d : public Module {
 public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, ConvOptions options = {});
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)
  Tensor weight, bias;

 private:
  ConvOptions options_;
};

using Conv2dOptions = ConvOptions;
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, Conv2dOptions options = {});
  Tensor forward(const Tensor& x);
  WEFT_ARGS(input)
  Tensor weight, bias;

 private:
  Conv2dOptions options_;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // a row of zeros that gets no gradient; -1 is the last
  bool scale_grad_by_freq = false;  // gradients are divided by how often their row occurs in the batch
  bool sparse = false;              // gradients have the rows that were looked up only (weft/ops/sparse.h)
};
// A table of vectors, looked up by number: [*] of integers gives [*, dim].
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t dim, EmbeddingOptions options = {});
  Tensor forward(const Tensor& indices) {
    return embedding(weight, indices, padding_, scale_grad_by_freq_, sparse_);
  }
  WEFT_ARGS(input)
  Tensor weight;

 private:
  int64_t padding_;  // -1 for none
  bool scale_grad_by_freq_, sparse_;
};

struct EmbeddingBagOptions {
  std::optional<int64_t> padding_idx = {};  // a row that counts for nothing; -1 is the last
  functional::BagMode mode = functional::BagMode::kMean;
  bool scale_grad_by_freq = false;   // gradients are divided by how often their row occurs in the batch
  bool sparse = false;               // gradients have the rows that were looked up only (weft/ops/sparse.h)
  bool include_last_offset = false;  // the last offset is the end of the last bag
};
// Sums, means or maxima of rows of a table: bags of [B, N] indices give [B, dim], and so do a list of indices
// and the offsets at which its bags begin.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t count, int64_t dim, EmbeddingBagOptions options = {});
  Tensor forward(const Tensor& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});
  WEFT_ARGS(input, offsets, per_sample_weights)
  Tensor weight;

 private:
  EmbeddingBagOptions options_;
};

class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {
    require(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  }
  Tensor forward(const Tensor& x) { return dropout(x, p_, is_training()); }
  WEFT_ARGS(input)

 private:
  double p_;
};

// Gives back what it gets.
class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) { return x; }
  WEFT_ARGS(input)
};

class Flatten : public Module {
 public:
  Tensor forward(const Tensor& x) { return flatten(x, 1); }
  WEFT_ARGS(input)
};

// Modules in a row, named "0", "1", ...
class Sequential : public Module {
 public:
  template <typename... M>
  explicit Sequential(M... modules) {
    (push_back(std::move(modules)), ...);
  }
  template <typename M>
  void push_back(M module) {
    detail::Kept<M> step(child(std::to_string(steps_.size()), std::move(module)));
    steps_.push_back([step = std::move(step)](const Tensor& x) mutable { return (*step)(x); });
  }
  Tensor forward(Tensor x) {
    for (auto& step : steps_) x = step(x);
    return x;
  }
  WEFT_ARGS(input)
  size_t size() const { return steps_.size(); }

 private:
  std::vector<std::function<Tensor(const Tensor&)>> steps_;
};

// Modules of one type under the names "0", "1", ...; it has no forward of its own.
template <typename M>
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(const ModuleList& other) : Module(other) {
    modules_.reserve(other.modules_.size());
    for (const M& module : other.modules_) modules_.push_back(detail::copied(module));
  }
  ModuleList(ModuleList&&) = default;
  void push_back(M module) { modules_.push_back(child(std::to_string(modules_.size()), std::move(module))); }
  M& operator[](size_t i) { return modules_[i]; }
  size_t size() const { return modules_.size(); }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }

 private:
  std::vector<M> modules_;
};

}  // namespace weft::nn
