#pragma once

#include "weft/nn/layers.h"

// GPT-2 (Radford et al., 2019), with the structure and the parameter names of Hugging Face's GPT2LMHeadModel:
// its state dicts load. Those of the files that OpenAI published lack the prefix "transformer." and the tied
// "lm_head.weight".
//
//   models::Gpt2 model = models::gpt2_small();
//   Tensor logits = model(from_data<int64_t>({464, 3290}, {1, 2}));   [1, 2, 50257]

namespace weft::models {

struct Gpt2Options {
  int64_t vocab_size = 50257;
  int64_t n_positions = 1024;  // the longest sequence
  int64_t n_embd = 768;        // the width
  int64_t n_layer = 12, n_head = 12;
  double dropout = 0.1;  // of embeddings, attention weights and what each block adds
  double layer_norm_epsilon = 1e-5;
};

// y = x W + b, with W of [in, out]: the transpose of nn::Linear's.
class Gpt2Projection : public nn::Module {
 public:
  Gpt2Projection(int64_t in, int64_t out, double deviation);
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)
  Tensor weight, bias;
};

// Attention of each position to itself and those before it.
class Gpt2Attention : public nn::Module {
 public:
  explicit Gpt2Attention(const Gpt2Options& options);
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)
  Gpt2Projection c_attn, c_proj;
  nn::Dropout attn_dropout, resid_dropout;

 private:
  int64_t heads_;
};

class Gpt2Mlp : public nn::Module {
 public:
  explicit Gpt2Mlp(const Gpt2Options& options);
  Tensor forward(const Tensor& x) { return dropout(c_proj(gelu(c_fc(x), "tanh"))); }
  WEFT_ARGS(x)
  Gpt2Projection c_fc, c_proj;
  nn::Dropout dropout;
};

class Gpt2Block : public nn::Module {
 public:
  explicit Gpt2Block(const Gpt2Options& options);
  Tensor forward(const Tensor& x);
  WEFT_ARGS(x)
  nn::LayerNorm ln_1;
  Gpt2Attention attn;
  nn::LayerNorm ln_2;
  Gpt2Mlp mlp;
};

// From tokens, [N, T] of integers, to what the last block says of each position, [N, T, n_embd].
class Gpt2Transformer : public nn::Module {
 public:
  explicit Gpt2Transformer(const Gpt2Options& options);
  Tensor forward(const Tensor& tokens);
  WEFT_ARGS(tokens)
  nn::Embedding wte, wpe;  // of tokens, of positions
  nn::Dropout drop;
  nn::ModuleList<Gpt2Block> h;
  nn::LayerNorm ln_f;
};

// Scores each token by its row of a table.
class Gpt2Head : public nn::Module {
 public:
  explicit Gpt2Head(const Tensor& table) : weight(parameter("weight", table)) {}
  Tensor forward(const Tensor& x) { return linear(x, weight); }
  WEFT_ARGS(x)
  Tensor weight;
};

// From tokens to the logits of the token that follows each, [N, T, vocab_size]. The output weights are those
// of the token embedding.
class Gpt2 : public nn::Module {
 public:
  explicit Gpt2(const Gpt2Options& options = {});
  Tensor forward(const Tensor& tokens) { return lm_head(transformer(tokens)); }
  WEFT_ARGS(tokens)
  Gpt2Options options;
  Gpt2Transformer transformer;
  Gpt2Head lm_head;
};

// The sizes that OpenAI published: 124, 355, 774 and 1558 million parameters.
Gpt2 gpt2_small();
Gpt2 gpt2_medium();
Gpt2 gpt2_large();
Gpt2 gpt2_xl();

}  // namespace weft::models
