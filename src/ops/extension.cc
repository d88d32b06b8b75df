#include "weft/ops/extension.h"

#include "weft/base/error.h"

namespace weft {

Tensor make_extension(Ref<Extension> extension, const Tensor& like) {
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, like.device()), like.dtype(), like.device());
  impl->set_geometry(like.sizes(), like.strides());
  impl->set_flags(layer::kExtension);
  impl->box = std::move(extension);
  return Tensor(std::move(impl));
}

std::string_view layout_of(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  return extension ? extension->layout() : "strided";
}

Tensor dense_form(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  std::optional<Tensor> dense = extension ? extension->to_dense() : std::nullopt;
  return dense ? dense_form(*dense) : tensor;
}

namespace {

template <typename F>
bool any_extension(Args args, F visit) {
  for (const Value& value : args) {
    if (value.is_sequence()) {
      if (any_extension(Args(value.elements()), visit)) return true;
    } else if (Extension* extension = value.is_tensor() ? extension_of(value.tensor_ref()) : nullptr) {
      if (visit(*extension)) return true;
    }
  }
  return false;
}

// A view of an extension shares the identity of what it views, as its inner tensors share theirs.
void share_storage(const Operator& op, Args args, const Value& result) {
  if (!op.info().is_view || !args[0].is_tensor()) return;
  const Ref<Storage>& storage = args[0].tensor_ref().storage();
  auto share = [&](const Value& value) {
    if (value.is_tensor() && extension_of(value.tensor_ref()))
      value.tensor_ref().impl()->set_storage(storage);
  };
  if (!result.is_sequence()) return share(result);
  for (const Value& element : result.elements()) share(element);
}

// A written argument is returned as itself, whatever handle the extension made for it.
Value with_written_arguments(const Operator& op, Args args, Value result) {
  const Operator::Info& info = op.info();
  if (!info.is_mutable) return result;
  auto written = [&](size_t i) {
    return info.result_aliases[i] >= 0 && info.written[static_cast<size_t>(info.result_aliases[i])];
  };
  if (info.result_aliases.size() == 1)
    return written(0) ? args[static_cast<size_t>(info.result_aliases[0])] : result;
  ValueList results = result.is_sequence() ? result.elements() : ValueList{};
  for (size_t i = 0; i < results.size(); ++i)
    if (written(i)) results[i] = args[static_cast<size_t>(info.result_aliases[i])];
  return Value::tuple(std::move(results));
}

}  // namespace

void check_decomposable(const Operator& op, Args args) {
  any_extension(args, [&](const Extension& extension) {
    extension.check_decomposable(op);
    return false;
  });
}

Value layers::extension(const Operator& op, Args args) {
  std::optional<Value> answer;
  {
    MaskScope mask(layer::at_and_below(layer::kExtension));
    any_extension(args, [&](Extension& extension) {
      answer = extension.handle(op, args);
      return answer.has_value();
    });
  }
  if (!answer) unsupported("{}: no extension among the arguments handles it", op.name());
  Value result = with_written_arguments(op, args, std::move(*answer));
  dispatch::bump_versions(op, args);
  share_storage(op, args, result);
  dispatch::note_views(op, args, result);
  return result;
}

}  // namespace weft
