// Exports models that are written in C++, for any batch (and length): export_models FOLDER
//
// For each NAME.pt2, NAME.train.pt2 and NAME.core.pt2, what the model gives for three sizes of its inputs:
// NAME-0.safetensors, ... with inputs "0", "1", ... and results "out.0", "out.1", ...
#include <weft/models/bert.h>
#include <weft/models/gpt2.h>
#include <weft/models/lstm_tagger.h>
#include <weft/models/resnet.h>
#include <weft/weft.h>
#include <iostream>

namespace {

using namespace weft;

struct Example {
  std::string name;
  ShapeSpec shape;  // of each input
  std::vector<std::string> arguments;
  // Inputs of a batch and a length.
  std::function<ValueList(int64_t, int64_t)> inputs;
};

template <typename M>
void write(M model, const Example& example, const std::string& folder) {
  model.eval();
  std::vector<std::pair<std::string, ShapeSpec>> shapes;
  for (const std::string& argument : example.arguments) shapes.emplace_back(argument, example.shape);
  const ExportOptions options{.dynamic_shapes = DynamicShapes::by_name(shapes)};
  const ValueList inputs = example.inputs(3, 7);
  const std::string path = folder + "/" + example.name;
  save_pt2(export_program(model, inputs, options), path + ".pt2");
  const ExportedProgram trainable = export_for_training(model, inputs, options);
  save_pt2(trainable, path + ".train.pt2");
  save_pt2(trainable.run_decompositions(), path + ".core.pt2");
  NoGrad no_grad;
  size_t i = 0;
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{2, 5}, {3, 7}, {6, 12}}) {
    std::vector<SafeTensors::Entry> entries;
    const ValueList given = example.inputs(batch, length);
    for (size_t k = 0; k < given.size(); ++k) entries.emplace_back(std::to_string(k), given[k].to_tensor());
    const ValueList results = tree_leaves(trainable.module().call(given));
    const ValueList own = tree_leaves(nn::detail::erased_call(model)->call(given));
    for (size_t k = 0; k < own.size(); ++k) {
      assert_close(results[k].to_tensor(), own[k].to_tensor());
      entries.emplace_back("out." + std::to_string(k), own[k].to_tensor());
    }
    save_safetensors(SafeTensors(entries), path + "-" + std::to_string(i++) + ".safetensors");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  require(argc == 2, "usage: export_models FOLDER");
  const std::string folder = argv[1];
  const Dim batch("batch", {.min = 1, .max = 8}), length("length", {.min = 2, .max = 16});
  auto images = [](int64_t rows, int64_t) { return ValueList{randn({rows, 3, 64, 64})}; };
  auto tokens = [](int64_t rows, int64_t columns) { return ValueList{randint(50, {rows, columns})}; };
  auto masked = [](int64_t rows, int64_t columns) {
    return ValueList{randint(50, {rows, columns}), ones({rows, columns})};
  };
  write(models::resnet18({.num_classes = 10}), {"resnet18", {{0, batch}}, {"x"}, images}, folder);
  write(models::resnet50({.num_classes = 10}), {"resnet50", {{0, batch}}, {"x"}, images}, folder);
  write(models::Gpt2({.vocab_size = 50, .n_positions = 16, .n_embd = 32, .n_layer = 2, .n_head = 4}),
        {"gpt2", {{0, batch}, {1, length}}, {"tokens"}, tokens}, folder);
  write(models::Bert({.vocab_size = 50,
                      .max_position_embeddings = 16,
                      .hidden_size = 32,
                      .intermediate_size = 64,
                      .num_hidden_layers = 2,
                      .num_attention_heads = 4}),
        {"bert", {{0, batch}, {1, length}}, {"input_ids", "attention_mask"}, masked}, folder);
  write(models::LstmTagger(
            {.vocab_size = 50, .num_tags = 5, .embedding_dim = 12, .hidden_size = 16, .num_layers = 2}),
        {"lstm_tagger", {{0, batch}}, {"tokens"}, [&](int64_t rows, int64_t) { return tokens(rows, 7); }},
        folder);
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
