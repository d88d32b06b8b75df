#pragma once

// What PyTorch computed with a model, and how the numbers of weights and inputs follow from a formula:
// scripts/record_models.py made the files of tests/data/models and has the formula, too.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "support/tensors.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/module.h"

namespace weft::models {

// `root` is the project.
inline Json recorded(const std::string& root, const std::string& name) {
  std::ifstream file(root + "/tests/data/models/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return Json::parse(text.str(), name);
}

// Numbers in [-1, 1) that the recording side computes too.
inline Tensor spread(SymIntSpan sizes, uint64_t seed) {
  Tensor tensor = empty(sizes, kFloat64);
  for (int64_t i = 0; i < tensor.plain_numel(); ++i) {
    auto mixed = static_cast<uint32_t>((static_cast<uint64_t>(i) + 1000003 * seed) * 2654435761u);
    tensor.data<double>()[i] = static_cast<double>(mixed) / 0x1p31 - 1;
  }
  return tensor;
}

inline void fill(const nn::Module& net) {
  GradModeScope no_grad(false);
  uint64_t k = 0;
  for (const auto& [name, tensor] : net.state_dict()) {
    Tensor numbers = spread(tensor.sizes(), k++);
    if (!tensor.is_floating_point()) continue;
    if (tensor.dim() == 4)
      numbers *= std::sqrt(6.0 / static_cast<double>(tensor.plain_numel() / tensor.plain_sizes()[0]));
    else if (name.ends_with("running_var") || (name.ends_with("weight") && tensor.dim() == 1))
      numbers = numbers * 0.25 + 1;
    else numbers *= 0.125;
    copy_(tensor, numbers);
  }
}

inline std::vector<double> sums(const Tensor& tensor) {
  Tensor flat = tensor.detach().flatten();
  return {norm(flat).item().to_double(), (flat * spread(flat.sizes(), 1)).sum().item().to_double()};
}

inline void expect_close(const std::vector<double>& got, const Json& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double largest = 0;
  for (const Json& number : wanted.as_array()) largest = std::max(largest, std::fabs(number.as_double()));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted.at(i).as_double(), 1e-7 * largest) << what << ", number " << i;
}

// The names and sizes of a model's state, and the number of its parameters.
inline void expect_state(const nn::Module& net, const Json& wanted) {
  nn::NamedTensors state = net.state_dict();
  ASSERT_EQ(state.size(), wanted.at("state").size());
  for (size_t i = 0; i < state.size(); ++i) {
    const Json& entry = wanted.at("state").at(i);
    EXPECT_EQ(state[i].first, entry.at(0).as_string());
    std::vector<int64_t> sizes;
    for (const Json& size : entry.at(1).as_array()) sizes.push_back(size.as_int());
    EXPECT_EQ(state[i].second.plain_sizes().vec(), sizes) << state[i].first;
  }
  int64_t parameters = 0;
  for (const Tensor& parameter : net.parameters()) parameters += parameter.plain_numel();
  EXPECT_EQ(parameters, wanted.at("parameters").as_int());
}

}  // namespace weft::models
