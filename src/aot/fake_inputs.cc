#include "aot/fake_inputs.h"

#include <fmt/format.h>

namespace weft::aot {
namespace {

bool is_real_tensor(const Value& value) {
  return value.is_tensor() && value.tensor_ref().defined() && !is_fake(value.tensor_ref());
}

}  // namespace

ValueList fakes_of(const ValueList& leaves, const FakeMode& fake, size_t first, size_t num_fixed) {
  ValueList fakes;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string name = fmt::format("arg{}", first + i);
    auto request = [&](const Tensor& real) {
      return i < num_fixed ? FakeRequest::fixed(real.dim()) : FakeRequest(name);
    };
    if (is_real_tensor(leaves[i]))
      fakes.emplace_back(
          fake.fake_of(leaves[i].tensor_ref(), request(leaves[i].tensor_ref()).without_base()));
    else if (leaves[i].kind() == Value::Kind::kInt && fake.options().shape_env)
      fakes.emplace_back(fake.options().shape_env->create_value(leaves[i].to_int(), sym::Source(name),
                                                                sym::DimPolicy::kDuck));
    else fakes.push_back(leaves[i]);
  }
  return fakes;
}

std::unique_ptr<FakeMode> fake_mode(bool dynamic) {
  FakeOptions options{.allow_real_inputs = true};
  // Equal sizes of the examples are no promise: what the program needs to be equal is guarded.
  if (dynamic) options.shape_env = ShapeEnv::create({.duck_shape = false});
  return std::make_unique<FakeMode>(options);
}

}  // namespace weft::aot
