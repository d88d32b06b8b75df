#pragma once

#include "weft/nn/layers.h"
#include "weft/nn/recurrent.h"

// A tagger of sequences: embeddings, a bidirectional LSTM, a score of each tag for each token.
//
//   models::LstmTagger model({.vocab_size = 5000, .num_tags = 17});
//   Tensor scores = model(tokens);   [N, T, 17]

namespace weft::models {

struct LstmTaggerOptions {
  int64_t vocab_size = 10000, num_tags = 17;
  int64_t embedding_dim = 100, hidden_size = 128;  // of each direction
  int64_t num_layers = 1;
  double dropout = 0;  // of what each LSTM layer but the last gives
};

// From tokens, [N, T] of integers, to scores of [N, T, num_tags].
class LstmTagger : public nn::Module {
 public:
  explicit LstmTagger(const LstmTaggerOptions& options = {});
  Tensor forward(const Tensor& tokens) { return tags(std::get<0>(lstm(embedding(tokens)))); }
  WEFT_ARGS(tokens)
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear tags;
};

}  // namespace weft::models
