#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

// The contents of a safetensors file: named tensors, and notes. Tensors of a file that is loaded are the
// file's own pages, read when somebody looks at them; writing to one changes this process's copy only.
//   SafeTensors weights = load_safetensors("model.safetensors");
//   Tensor w = weights.at("fc1.weight");
class SafeTensors {
 public:
  using Entry = std::pair<std::string, Tensor>;

  SafeTensors() = default;
  // What modules and optimizers call their state, and back: a name that comes twice is an error.
  //   save_safetensors(net.state_dict(), "net.safetensors");
  //   net.load_state_dict(load_safetensors("net.safetensors"));
  SafeTensors(std::vector<Entry> entries);                         // NOLINT(google-explicit-constructor)
  operator const std::vector<Entry>&() const { return entries_; }  // NOLINT(google-explicit-constructor)

  // Null if there is no such tensor.
  const Tensor* find(std::string_view name) const;
  // An error that names some of those that are there if there is none.
  const Tensor& at(std::string_view name) const;
  // False, with nothing changed, if the name is taken.
  bool add(std::string name, Tensor tensor);
  size_t size() const { return entries_.size(); }
  // In the order of the file, or in which they were added.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  // What the file says about itself.
  std::vector<std::pair<std::string, std::string>> metadata;
  // Entries that were left out because weft has no such element type; only where the caller asked for that.
  std::vector<std::string> left_out;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> places_;
};

struct SafeTensorsOptions {
  // Leaves out tensors of element types that weft does not have, instead of refusing the file.
  bool leave_out_unsupported = false;
};

// Reads a file (or its bytes, called `source` in messages). Strict: a header beyond 100 MB, an unknown
// element type, sizes that disagree with offsets, duplicate names, overlaps and holes are FormatErrors that
// name the entry.
SafeTensors load_safetensors(const std::string& path, const SafeTensorsOptions& options = {});
SafeTensors parse_safetensors(std::string_view bytes, std::string_view source = "safetensors",
                              const SafeTensorsOptions& options = {});

// Writes the tensors as row-major values. complex128 is refused: the format has no such type. The file is
// replaced as a whole, so that what was loaded from it stays as it is.
void save_safetensors(const SafeTensors& tensors, const std::string& path);
std::string safetensors_bytes(const SafeTensors& tensors);

}  // namespace weft
