#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "io/pt2_symbols.h"
#include "weft/graph/graph_module.h"

namespace weft::pt2 {

// Maps devices of a program to those that are here: the CPU. One warning names the others.
class Devices {
 public:
  explicit Devices(std::string source) : source_(std::move(source)) {}
  Device read(const Json& json);

 private:
  std::string source_;
  bool has_warned_ = false;
};

// Reads the graph of a program, and those inside it.
class GraphReader {
 public:
  GraphReader(std::string source, Symbols& symbols, Devices& devices)
      : source_(std::move(source)), symbols_(symbols), devices_(devices) {}

  // `input_names` has a name for each input that is a literal, "" for the others, or is empty;
  // `input_sources` says where the caller finds the sizes of the inputs, likewise.
  GraphModule read(const Json& graph, const std::vector<std::string>& input_names = {},
                   const std::vector<sym::Source>& input_sources = {}, int depth = 0);

 private:
  std::string source_;
  Symbols& symbols_;
  Devices& devices_;
};

// A tensor without data, as `tensor_values` describes it; undefined for types and layouts that weft lacks.
Tensor described_tensor(const Json& meta, Symbols& symbols, Devices& devices, std::string_view what,
                        const sym::Source* source = nullptr);

// Notes of nodes that weft has no field for keep their names; these are the ones that only this format has.
inline constexpr const char* kMetaNote = "pt2.tensor_values";  // of tensors that cannot be described: JSON
inline constexpr const char* kInputsNote = "pt2.inputs";       // of missing operators: name, variant and kind
inline constexpr const char* kSingleNote = "pt2.single";       // of operators over functions: no tuple
inline constexpr const char* kNoneNote = "pt2.none";  // of missing operators: they give None, not nothing

}  // namespace weft::pt2
