#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/core/tensor.h"

namespace weft {

// NumPy's files: `.npy` is one array, `.npz` a zip archive of them. Arrays of little-endian numbers and bools
// can be read, in either order of dims, which becomes the tensor's strides; big-endian numbers are converted.
// Anything else is a FormatError that names the file and the entry. Tensors use the file's pages in place.
//   Tensor x = load_npy("x.npy");
//   for (const auto& [name, tensor] : load_npz("batch.npz")) ...
using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

Tensor load_npy(const std::string& path);
Tensor parse_npy(std::string_view bytes, std::string_view source = "npy");
// Names without ".npy", in the order of the file.
NamedArrays load_npz(const std::string& path);

// Row-major values. bfloat16 is an error that says what to do: NumPy has no such type.
void save_npy(const Tensor& tensor, const std::string& path);
std::string npy_bytes(const Tensor& tensor);
void save_npz(const NamedArrays& arrays, const std::string& path);

}  // namespace weft
