#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/core/tensor.h"

namespace weft::cli {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Null if there is none of that name.
const Tensor* find(const NamedTensors& tensors, const std::string& name);

// By the ending of the name: .safetensors, .npz, or .npy, whose one array is called "0".
NamedTensors read_tensors(const std::string& path);
void write_tensors(const NamedTensors& tensors, const std::string& path);
// A UsageError for an ending that is none of these.
void require_tensor_file(const std::string& path);
// That it can be written, before work is done for it.
void require_folder_of(const std::string& path);

}  // namespace weft::cli
