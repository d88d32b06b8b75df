#pragma once

#include "weft/nn/layers.h"

// BERT (Devlin et al., 2018), the encoder, with the structure and the parameter names of Hugging Face's
// BertModel: its state dicts load.
//
//   models::Bert model = models::bert_base();
//   Tensor features = model(tokens, mask);   [N, T, 768]

namespace weft::models {

struct BertOptions {
  int64_t vocab_size = 30522;
  int64_t max_position_embeddings = 512;  // the longest sequence
  int64_t type_vocab_size = 2;
  int64_t hidden_size = 768, intermediate_size = 3072;
  int64_t num_hidden_layers = 12, num_attention_heads = 12;
  double dropout = 0.1;  // of embeddings, attention weights and what each layer adds
  double layer_norm_eps = 1e-12;
};

// Of a token its own row, that of its position and that of its segment, normalised.
class BertEmbeddings : public nn::Module {
 public:
  explicit BertEmbeddings(const BertOptions& options);
  Tensor forward(const Tensor& tokens, const Tensor& segments);
  WEFT_ARGS(tokens, segments)
  nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
  nn::LayerNorm norm;
  nn::Dropout dropout;
};

// Attention of each position to all that `mask` lets it see: [N, 1, 1, T], true where it may.
class BertSelfAttention : public nn::Module {
 public:
  explicit BertSelfAttention(const BertOptions& options);
  Tensor forward(const Tensor& x, const Tensor& mask);
  WEFT_ARGS(x, mask)
  nn::Linear query, key, value;

 private:
  int64_t heads_;
  double dropout_;
};

// A projection whose result is added to what went in, and normalised.
class BertOutput : public nn::Module {
 public:
  BertOutput(int64_t in, const BertOptions& options);
  Tensor forward(const Tensor& x, const Tensor& residual) { return norm(dropout(dense(x)) + residual); }
  WEFT_ARGS(x, residual)
  nn::Linear dense;
  nn::LayerNorm norm;
  nn::Dropout dropout;
};

class BertAttention : public nn::Module {
 public:
  explicit BertAttention(const BertOptions& options);
  Tensor forward(const Tensor& x, const Tensor& mask) { return output(self(x, mask), x); }
  WEFT_ARGS(x, mask)
  BertSelfAttention self;
  BertOutput output;
};

class BertIntermediate : public nn::Module {
 public:
  explicit BertIntermediate(const BertOptions& options);
  Tensor forward(const Tensor& x) { return gelu(dense(x)); }
  WEFT_ARGS(x)
  nn::Linear dense;
};

class BertLayer : public nn::Module {
 public:
  explicit BertLayer(const BertOptions& options);
  Tensor forward(const Tensor& x, const Tensor& mask);
  WEFT_ARGS(x, mask)
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;
};

class BertEncoder : public nn::Module {
 public:
  explicit BertEncoder(const BertOptions& options);
  Tensor forward(const Tensor& x, const Tensor& mask);
  WEFT_ARGS(x, mask)
  nn::ModuleList<BertLayer> layer;
};

// The first position of a sequence, as a summary of all of it.
class BertPooler : public nn::Module {
 public:
  explicit BertPooler(const BertOptions& options);
  Tensor forward(const Tensor& x) { return tanh(dense(select(x, 1, 0))); }
  WEFT_ARGS(x)
  nn::Linear dense;
};

// From tokens, [N, T] of integers, to what the last layer says of each position, [N, T, hidden_size], and of
// the whole sequence, [N, hidden_size]. `mask`: 1 where there is a token, 0 where there is padding.
class Bert : public nn::Module {
 public:
  explicit Bert(const BertOptions& options = {});
  std::tuple<Tensor, Tensor> forward(const Tensor& input_ids, const Tensor& attention_mask);
  WEFT_ARGS(input_ids, attention_mask)
  BertOptions options;
  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;
};

// The sizes that Google published: 109 and 335 million parameters.
Bert bert_base();
Bert bert_large();

}  // namespace weft::models
