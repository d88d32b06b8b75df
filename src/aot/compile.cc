#include "weft/aot/compile.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <unordered_map>

#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/capture/is_compiling.h"

namespace weft {

Backend aot_eager(AotOptions options) {
  return
      [options = std::move(options)](const GraphModule& graph, const ValueList& examples) -> ValueFunction {
        AotModule compiled = aot_module_simplified(graph, examples, options);
        return [compiled](Args args) { return compiled.call(args); };
      };
}

namespace {

// Two calls of one kind run the same graph.
std::string kind_of(Args args) {
  const FlatTree flat = tree_flatten(Value::tuple({args.begin(), args.end()}));
  std::string text = flat.spec.to_string();
  std::map<const Storage*, size_t> memories;
  std::map<const TensorImpl*, size_t> tensors;
  for (size_t i = 0; i < flat.leaves.size(); ++i) {
    const Value& leaf = flat.leaves[i];
    if (!leaf.is_tensor() || !leaf.tensor_ref().defined()) {
      text += "|" + leaf.to_string();
      continue;
    }
    const Tensor& tensor = leaf.tensor_ref();
    text +=
        fmt::format("|{}{}+{} {}{} m{} t{}", describe(tensor).str(), describe_sizes(tensor.strides()).str(),
                    tensor.storage_offset().to_string(), tensor.requires_grad(), tensor.is_leaf(),
                    memories.try_emplace(tensor.storage().get(), i).first->second,
                    tensors.try_emplace(tensor.impl(), i).first->second);
  }
  return fmt::format("{}|{}", text, is_grad_enabled());
}

// For each leaf, which of the different ones it is.
std::vector<size_t> first_uses(const ValueList& leaves) {
  std::map<const TensorImpl*, size_t> known;
  std::vector<size_t> first;
  size_t count = 0;
  for (const Value& leaf : leaves) {
    const TensorImpl* tensor = leaf.is_tensor() ? leaf.tensor_ref().impl() : nullptr;
    const size_t index = tensor ? known.try_emplace(tensor, count).first->second : count;
    if (index == count) ++count;
    first.push_back(index);
  }
  return first;
}

ValueList unique_leaves(const ValueList& leaves, const std::vector<size_t>& first) {
  ValueList unique;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (first[i] == unique.size()) unique.push_back(leaves[i]);
  return unique;
}

}  // namespace

struct Compiled::Body {
  ValueFunction f;
  Backend backend;
  std::mutex mutex;
  std::unordered_map<std::string, ValueFunction> by_kind = {};

  ValueFunction compiled_for(Args args) {
    const std::string kind = kind_of(args);
    std::lock_guard lock(mutex);
    if (const auto known = by_kind.find(kind); known != by_kind.end()) return known->second;
    return by_kind.emplace(kind, capture(args)).first->second;
  }

  // The graph has one input for a tensor that is given twice: what happens to it is seen wherever it was
  // given.
  ValueFunction capture(Args args) const {
    const FlatTree flat = tree_flatten(Value::tuple({args.begin(), args.end()}));
    const std::vector<size_t> first = first_uses(flat.leaves);
    auto f_of_leaves = [this, first, spec = flat.spec](Args unique) {
      ValueList leaves;
      for (size_t index : first) leaves.push_back(unique[index]);
      return f(tree_unflatten(leaves, spec).elements());
    };
    const ValueList examples = unique_leaves(flat.leaves, first);
    const detail::CompilingScope compiling;
    const GraphModule graph = GraphMaker(f_of_leaves, {.mode = CaptureMode::kFake,
                                                       .pre_dispatch = true,
                                                       .keep_custom_functions = true,
                                                       .allow_real_inputs = true})
                                  .capture(examples);
    return [run = backend(graph, examples), first](Args given) {
      const ValueList leaves = tree_leaves(Value::tuple({given.begin(), given.end()}));
      return run(unique_leaves(leaves, first));
    };
  }
};

Compiled::Compiled(ValueFunction f, Backend backend) : body_(std::make_shared<Body>()) {
  body_->f = std::move(f);
  body_->backend = std::move(backend);
}

// The graph runs without the lock.
Value Compiled::call(Args args) const { return body_->compiled_for(args)(args); }

ValueFunction Compiled::function() const {
  return [self = *this](Args args) { return self.call(args); };
}

size_t Compiled::num_captures() const {
  std::lock_guard lock(body_->mutex);
  return body_->by_kind.size();
}

}  // namespace weft
