#pragma once

#include <unordered_map>

#include "func/level.h"

namespace weft {

// A transform whose whole work is to put other tensors into calls.
class SubstitutionLevel final : public Level {
 public:
  const char* name() const override { return "substitution"; }
  bool sees_everything() const override { return true; }
  bool decomposes() const override { return false; }
  // A function that runs again later still names the tensors that it closed over.
  bool sees_ended() const override { return true; }

  void replace(const Tensor& own, const Tensor& other) { others_[own.impl()] = other; }
  Value handle(const Operator& op, Args args) override;

 private:
  std::unordered_map<const TensorImpl*, Tensor> others_;
};

// No recorder writes down what only looks for something.
inline constexpr uint32_t kUnrecorded =
    ~(layer::kRecorderUpper | layer::kRecorderLower | layer::kFunctionalizeUpper |
      layer::kFunctionalizeLower | layer::kModes);

}  // namespace weft
