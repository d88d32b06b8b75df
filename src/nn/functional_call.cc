#include "weft/nn/functional_call.h"

#include <unordered_map>

#include "func/substitution.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"

namespace weft::nn {

struct Substitution::Entry {
  explicit Entry(Ref<Level> level) : entry(std::move(level)) {}
  LevelEntry entry;
};

Substitution::Substitution(const Module& module, const NamedTensors& tensors) {
  std::unordered_map<std::string, Tensor> own;
  for (const auto& [name, tensor] : module.named_parameters(false)) own.emplace(name, tensor);
  for (const auto& [name, tensor] : module.named_buffers(false)) own.emplace(name, tensor);
  auto level = make_ref<SubstitutionLevel>();
  for (const auto& [name, tensor] : tensors) {
    auto found = own.find(name);
    require(found != own.end(), "functional_call: the module has no parameter or buffer '{}'", name);
    require(tensor.defined() && may_be_same_sizes(tensor.sizes(), found->second.sizes()),
            "functional_call: '{}' is {} in the module, but {} was given", name, describe(found->second),
            describe(tensor));
    level->replace(found->second, tensor);
  }
  entry_ = std::make_unique<Entry>(level);
}

Substitution::~Substitution() = default;

}  // namespace weft::nn
