#include "weft/models/gpt2.h"

#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft::models {
namespace {

constexpr double kDeviation = 0.02;  // of initial weights

// What is added to the residual stream adds up over the layers.
double residual_deviation(const Gpt2Options& options) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(options.n_layer));
}

Tensor normal(SymIntSpan sizes, double deviation) {
  GradModeScope no_grad(false);
  return normal_(empty(sizes), 0, deviation);
}

nn::Embedding table(int64_t count, const Gpt2Options& options) {
  nn::Embedding embedding(count, options.n_embd);
  GradModeScope no_grad(false);
  normal_(embedding.weight, 0, kDeviation);
  return embedding;
}

// Whether each position may not see each other one: the later ones.
Tensor later_positions(const SymInt& length, Device device) {
  Tensor position = arange(Scalar(length), std::nullopt, std::nullopt, device);
  return position.unsqueeze(0) > position.unsqueeze(1);
}

}  // namespace

Gpt2Projection::Gpt2Projection(int64_t in, int64_t out, double deviation)
    : weight(parameter("weight", normal({in, out}, deviation))), bias(parameter("bias", zeros({out}))) {}

Tensor Gpt2Projection::forward(const Tensor& x) {
  SymInts sizes(x.sizes());
  sizes.back() = weight.size(1);
  return addmm(bias, x.reshape({-1, x.size(-1)}), weight).view(sizes);
}

Gpt2Attention::Gpt2Attention(const Gpt2Options& options)
    : c_attn(child("c_attn", Gpt2Projection(options.n_embd, 3 * options.n_embd, kDeviation))),
      c_proj(child("c_proj", Gpt2Projection(options.n_embd, options.n_embd, residual_deviation(options)))),
      attn_dropout(child("attn_dropout", nn::Dropout(options.dropout))),
      resid_dropout(child("resid_dropout", nn::Dropout(options.dropout))),
      heads_(options.n_head) {
  require(heads_ > 0 && options.n_embd % heads_ == 0, "GPT-2: n_embd = {} is no multiple of n_head = {}",
          options.n_embd, options.n_head);
}

Tensor Gpt2Attention::forward(const Tensor& x) {
  const SymInt batch = x.size(0), length = x.size(1), width = x.size(2);
  auto by_head = [&](const Tensor& t) {
    return t.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = split(c_attn(x), width, 2);
  const Tensor queries = by_head(parts[0]), keys = by_head(parts[1]), values = by_head(parts[2]);
  const double head_width = static_cast<double>(c_proj.weight.plain_sizes()[0] / heads_);
  Tensor scores = matmul(queries, keys.transpose(-2, -1)) / std::sqrt(head_width);
  scores = masked_fill(scores, later_positions(length, x.device()), -std::numeric_limits<double>::infinity());
  const Tensor weights = attn_dropout(softmax(scores, -1));
  const Tensor mixed = matmul(weights, values).transpose(1, 2).reshape({batch, length, width});
  return resid_dropout(c_proj(mixed));
}

Gpt2Mlp::Gpt2Mlp(const Gpt2Options& options)
    : c_fc(child("c_fc", Gpt2Projection(options.n_embd, 4 * options.n_embd, kDeviation))),
      c_proj(
          child("c_proj", Gpt2Projection(4 * options.n_embd, options.n_embd, residual_deviation(options)))),
      dropout(child("dropout", nn::Dropout(options.dropout))) {}

Gpt2Block::Gpt2Block(const Gpt2Options& options)
    : ln_1(child("ln_1", nn::LayerNorm({options.n_embd}, options.layer_norm_epsilon))),
      attn(child("attn", Gpt2Attention(options))),
      ln_2(child("ln_2", nn::LayerNorm({options.n_embd}, options.layer_norm_epsilon))),
      mlp(child("mlp", Gpt2Mlp(options))) {}

Tensor Gpt2Block::forward(const Tensor& x) {
  const Tensor attended = x + attn(ln_1(x));
  return attended + mlp(ln_2(attended));
}

namespace {
nn::ModuleList<Gpt2Block> blocks(const Gpt2Options& options) {
  nn::ModuleList<Gpt2Block> all;
  for (int64_t i = 0; i < options.n_layer; ++i) all.push_back(Gpt2Block(options));
  return all;
}
}  // namespace

Gpt2Transformer::Gpt2Transformer(const Gpt2Options& options)
    : wte(child("wte", table(options.vocab_size, options))),
      wpe(child("wpe", table(options.n_positions, options))),
      drop(child("drop", nn::Dropout(options.dropout))),
      h(child("h", blocks(options))),
      ln_f(child("ln_f", nn::LayerNorm({options.n_embd}, options.layer_norm_epsilon))) {}

Tensor Gpt2Transformer::forward(const Tensor& tokens) {
  require(tokens.dim() == 2, "GPT-2 reads tokens of [batch, length], but got {}", describe(tokens));
  const SymInt length = tokens.size(1);
  require(guard_or(length <= wpe.weight.size(0), true), "GPT-2: {} has {} positions, but the model knows {}",
          describe(tokens), length, wpe.weight.size(0));
  Tensor x = wte(tokens) + wpe(arange(Scalar(length), std::nullopt, std::nullopt, tokens.device()));
  x = drop(x);
  for (Gpt2Block& block : h) x = block(x);
  return ln_f(x);
}

Gpt2::Gpt2(const Gpt2Options& options)
    : options(options),
      transformer(child("transformer", Gpt2Transformer(options))),
      lm_head(child("lm_head", Gpt2Head(transformer.wte.weight))) {}

Gpt2 gpt2_small() { return Gpt2(); }
Gpt2 gpt2_medium() { return Gpt2({.n_embd = 1024, .n_layer = 24, .n_head = 16}); }
Gpt2 gpt2_large() { return Gpt2({.n_embd = 1280, .n_layer = 36, .n_head = 20}); }
Gpt2 gpt2_xl() { return Gpt2({.n_embd = 1600, .n_layer = 48, .n_head = 25}); }

}  // namespace weft::models
