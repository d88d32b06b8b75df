#include "weft/models/bert.h"

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft::models {
namespace {

constexpr double kInitialDeviation = 0.02;  // of initial weights

nn::Embedding table(int64_t count, const BertOptions& options) {
  nn::Embedding embedding(count, options.hidden_size);
  GradModeScope no_grad(false);
  normal_(embedding.weight, 0, kInitialDeviation);
  return embedding;
}

nn::Linear projection(int64_t in, int64_t out) {
  nn::Linear linear(in, out);
  GradModeScope no_grad(false);
  normal_(linear.weight, 0, kInitialDeviation);
  zero_(linear.bias);
  return linear;
}

nn::LayerNorm norm_of(const BertOptions& options) {
  return nn::LayerNorm({options.hidden_size}, options.layer_norm_eps);
}

nn::ModuleList<BertLayer> layers(const BertOptions& options) {
  nn::ModuleList<BertLayer> all;
  for (int64_t i = 0; i < options.num_hidden_layers; ++i) all.push_back(BertLayer(options));
  return all;
}

}  // namespace

BertEmbeddings::BertEmbeddings(const BertOptions& options)
    : word_embeddings(child("word_embeddings", table(options.vocab_size, options))),
      position_embeddings(child("position_embeddings", table(options.max_position_embeddings, options))),
      token_type_embeddings(child("token_type_embeddings", table(options.type_vocab_size, options))),
      norm(child("LayerNorm", norm_of(options))),
      dropout(child("dropout", nn::Dropout(options.dropout))) {}

Tensor BertEmbeddings::forward(const Tensor& tokens, const Tensor& segments) {
  const SymInt length = tokens.size(1);
  const Tensor positions = arange(Scalar(length), std::nullopt, std::nullopt, tokens.device());
  return dropout(
      norm(word_embeddings(tokens) + token_type_embeddings(segments) + position_embeddings(positions)));
}

BertSelfAttention::BertSelfAttention(const BertOptions& options)
    : query(child("query", projection(options.hidden_size, options.hidden_size))),
      key(child("key", projection(options.hidden_size, options.hidden_size))),
      value(child("value", projection(options.hidden_size, options.hidden_size))),
      heads_(options.num_attention_heads),
      dropout_(options.dropout) {
  require(heads_ > 0 && options.hidden_size % heads_ == 0,
          "BERT: hidden_size = {} is no multiple of num_attention_heads = {}", options.hidden_size, heads_);
}

Tensor BertSelfAttention::forward(const Tensor& x, const Tensor& mask) {
  const SymInt batch = x.size(0), length = x.size(1), width = x.size(2);
  auto by_head = [&](const Tensor& t) {
    return t.view({batch, length, heads_, width / heads_}).transpose(1, 2);
  };
  const Tensor mixed = scaled_dot_product_attention(by_head(query(x)), by_head(key(x)), by_head(value(x)),
                                                    mask, is_training() ? dropout_ : 0.0);
  return mixed.transpose(1, 2).reshape({batch, length, width});
}

BertOutput::BertOutput(int64_t in, const BertOptions& options)
    : dense(child("dense", projection(in, options.hidden_size))),
      norm(child("LayerNorm", norm_of(options))),
      dropout(child("dropout", nn::Dropout(options.dropout))) {}

BertAttention::BertAttention(const BertOptions& options)
    : self(child("self", BertSelfAttention(options))),
      output(child("output", BertOutput(options.hidden_size, options))) {}

BertIntermediate::BertIntermediate(const BertOptions& options)
    : dense(child("dense", projection(options.hidden_size, options.intermediate_size))) {}

BertLayer::BertLayer(const BertOptions& options)
    : attention(child("attention", BertAttention(options))),
      intermediate(child("intermediate", BertIntermediate(options))),
      output(child("output", BertOutput(options.intermediate_size, options))) {}

Tensor BertLayer::forward(const Tensor& x, const Tensor& mask) {
  const Tensor attended = attention(x, mask);
  return output(intermediate(attended), attended);
}

BertEncoder::BertEncoder(const BertOptions& options) : layer(child("layer", layers(options))) {}

Tensor BertEncoder::forward(const Tensor& x, const Tensor& mask) {
  Tensor y = x;
  for (BertLayer& each : layer) y = each(y, mask);
  return y;
}

BertPooler::BertPooler(const BertOptions& options)
    : dense(child("dense", projection(options.hidden_size, options.hidden_size))) {}

Bert::Bert(const BertOptions& options)
    : options(options),
      embeddings(child("embeddings", BertEmbeddings(options))),
      encoder(child("encoder", BertEncoder(options))),
      pooler(child("pooler", BertPooler(options))) {}

std::tuple<Tensor, Tensor> Bert::forward(const Tensor& input_ids, const Tensor& attention_mask) {
  require(input_ids.dim() == 2 && attention_mask.dim() == 2,
          "BERT reads tokens and a mask of [batch, length], but got {} and {}", describe(input_ids),
          describe(attention_mask));
  const SymInt length = input_ids.size(1);
  require(guard_or(length <= options.max_position_embeddings, true),
          "BERT: {} has {} positions, but the model knows {}", describe(input_ids), length,
          options.max_position_embeddings);
  const Tensor mask = attention_mask.to(kBool).unsqueeze(1).unsqueeze(1);
  const Tensor y = encoder(embeddings(input_ids, zeros_like(input_ids)), mask);
  return {y, pooler(y)};
}

Bert bert_base() { return Bert(); }
Bert bert_large() {
  return Bert(
      {.hidden_size = 1024, .intermediate_size = 4096, .num_hidden_layers = 24, .num_attention_heads = 16});
}

}  // namespace weft::models
