#include "io/traced_inputs.h"

#include "weft/base/error.h"
#include "weft/ops/fake.h"
#include "weft/ops/nested.h"
#include "weft/ops/operators.h"

namespace weft {

// --- writing ---------------------------------------------------------------------------------------------

namespace {

Json::Array numbers(SymIntSpan values) {
  Json::Array array;
  for (const SymInt& value : values) array.emplace_back(value.plain());
  return array;
}

Json describe_tensor(const Value& leaf) {
  if (leaf.is_none()) return Json::Object{{"nested", true}};  // it was read from such a file
  require(leaf.is_tensor(), "save_graph_module: a module was traced with tensors, but its inputs have {}",
          leaf.kind_name());
  const Tensor& tensor = leaf.tensor_ref();
  // Sizes that differ from component to component are none that a graph's input could have.
  if (is_nested(tensor)) return Json::Object{{"nested", true}};
  return Json::Object{{"dtype", dtype_name(tensor.dtype())},
                      {"sizes", numbers(tensor.sizes())},
                      {"strides", numbers(tensor.strides())},
                      {"device", tensor.device().to_string()},
                      {"requires_grad", tensor.requires_grad()}};
}

}  // namespace

Json describe_inputs(const Dict& inputs) {
  Json::Object note;
  for (const auto& [method, arguments] : inputs) {
    const FlatTree flat = tree_flatten(arguments);
    Json::Array tensors;
    for (const Value& leaf : flat.leaves) tensors.push_back(describe_tensor(leaf));
    note[method.to_string_view()] =
        Json::Object{{"arguments", flat.spec.to_json()}, {"tensors", std::move(tensors)}};
  }
  return note;
}

// --- reading ---------------------------------------------------------------------------------------------

namespace {

template <typename... A>
void check(bool is_right, fmt::format_string<A...> text, A&&... args) {
  if (!is_right) throw FormatError("traced_inputs: " + fmt::format(text, std::forward<A>(args)...));
}

std::vector<int64_t> read_integers(const Json& array) {
  std::vector<int64_t> values;
  for (const Json& value : array.as_array()) {
    values.push_back(value.as_int());
    check(values.back() >= 0, "expected sizes and strides that are not negative, but got {}", values.back());
  }
  return values;
}

Device read_device(const std::string& text) {
  try {
    return Device(text);
  } catch (const Error& error) {
    throw FormatError(fmt::format("traced_inputs: {}", error.message()));
  }
}

// The last element has to be where an address can be.
void check_extent(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  check(sizes.size() == strides.size(), "expected a stride for each size, but got {} for {}", strides.size(),
        sizes.size());
  int64_t last = 0, count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach = 0;
    check(!__builtin_mul_overflow(count, std::max<int64_t>(sizes[d], 1), &count) &&
              !__builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach) &&
              !__builtin_add_overflow(last, reach, &last) && last < (int64_t{1} << 58) &&
              count < (int64_t{1} << 58),
          "the size {} with the stride {} is beyond all memory", sizes[d], strides[d]);
  }
}

// A nested tensor leaves nothing.
Value read_tensor(const Json& note) {
  if (note.contains("nested")) return {};
  const std::string& name = note.at("dtype").as_string();
  const std::optional<DType> dtype = dtype_from_name(name);
  check(dtype.has_value(), "\"{}\" is no dtype", name);
  const std::vector<int64_t> sizes = read_integers(note.at("sizes"));
  const std::vector<int64_t> strides = read_integers(note.at("strides"));
  check_extent(sizes, strides);
  FakeMode without_data;
  Tensor tensor = empty_strided(SymInts(sizes.begin(), sizes.end()), SymInts(strides.begin(), strides.end()),
                                *dtype, std::nullopt, read_device(note.at("device").as_string()));
  const bool wants_gradient = note.at("requires_grad").as_bool();
  check(!wants_gradient || is_differentiable(*dtype), "a tensor of {} cannot require a gradient", name);
  if (wants_gradient) tensor.set_requires_grad();
  return tensor;
}

}  // namespace

Dict read_inputs(const Json& note) {
  Dict inputs;
  for (const auto& [method, entry] : note.as_object()) {
    const TreeSpec spec = TreeSpec::from_json(entry.at("arguments").as_string());
    ValueList leaves;
    for (const Json& tensor : entry.at("tensors").as_array()) leaves.emplace_back(read_tensor(tensor));
    check(spec.num_leaves() == leaves.size(), "the arguments of {} are {} tensors, not {}", method,
          spec.num_leaves(), leaves.size());
    inputs.set(method, tree_unflatten(leaves, spec));
  }
  return inputs;
}

void restore_shapes(const GraphModule& module) {
  const std::vector<Node*> placeholders = module.graph().placeholders();
  for (const auto& [method, arguments] : module.traced_inputs()) {
    if (arguments.is_dict()) {
      for (Node* node : placeholders)
        if (const Value* own = arguments.to_dict().find(node->target().to_string()))
          if (!own->is_none()) node->meta().value = *own;
      continue;
    }
    const ValueList values =
        module.call_spec() || !arguments.is_sequence() ? tree_leaves(arguments) : arguments.elements();
    for (size_t i = 0; i < std::min(values.size(), placeholders.size()); ++i)
      if (!values[i].is_none()) placeholders[i]->meta().value = values[i];
  }
}

}  // namespace weft
