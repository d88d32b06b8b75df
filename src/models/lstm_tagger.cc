#include "weft/models/lstm_tagger.h"

namespace weft::models {

LstmTagger::LstmTagger(const LstmTaggerOptions& options)
    : embedding(child("embedding", nn::Embedding(options.vocab_size, options.embedding_dim))),
      lstm(child("lstm", nn::LSTM(options.embedding_dim, options.hidden_size,
                                  {.num_layers = options.num_layers,
                                   .batch_first = true,
                                   .dropout = options.dropout,
                                   .bidirectional = true}))),
      tags(child("tags", nn::Linear(2 * options.hidden_size, options.num_tags))) {}

}  // namespace weft::models
