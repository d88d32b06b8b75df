#include "weft/ops/extension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dispatch/inplace_view.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/recorder.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {

// --- taking one apart ------------------------------------------------------------------------------------

std::vector<std::string> Extension::inner_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < inner_tensors().size(); ++i) names.push_back(fmt::format("inner{}", i));
  return names;
}

Tensor Extension::inner(std::string_view name) const {
  const std::vector<std::string> names = inner_names();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return inner_tensors()[i];
  fail("{} has no inner tensor '{}'; it has {}", type_name(), name, fmt::join(names, ", "));
}

namespace {

bool are_equal(SymIntSpan a, SymIntSpan b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SymInt& x, const SymInt& y) { return x.same_as(y); });
}

}  // namespace

FlatExtension flatten_extension(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  require(extension != nullptr, "flatten_extension: {} is no extension", describe(tensor));
  const TensorImpl& impl = *tensor.impl();
  FlatExtension flat{.kind = Ref<const Extension>(extension),
                     .names = extension->inner_names(),
                     .tensors = extension->inner_tensors(),
                     .context = extension->context_value(),
                     .dtype = impl.dtype(),
                     .device = impl.device(),
                     .sizes = SymInts(impl.sizes()),
                     .strides = SymInts(impl.strides()),
                     .offset = impl.storage_offset()};
  require(flat.names.size() == flat.tensors.size(), "{} names {} of its {} inner tensors",
          extension->type_name(), flat.names.size(), flat.tensors.size());
  return flat;
}

Tensor unflatten_extension(const FlatExtension& flat) {
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, flat.device), flat.dtype, flat.device);
  impl->set_geometry(flat.sizes, flat.strides, flat.offset);
  impl->set_flags(layer::kExtension);
  impl->box = flat.kind->with_inner(flat.tensors);
  return Tensor(std::move(impl));
}

bool FlatExtension::same_metadata(const FlatExtension& other) const {
  return kind->type_name() == other.kind->type_name() && names == other.names && context == other.context &&
         dtype == other.dtype && device == other.device && are_equal(sizes, other.sizes) &&
         are_equal(strides, other.strides) && offset.same_as(other.offset);
}

std::string FlatExtension::to_string() const {
  const std::string about = context.is_none() ? "" : "; " + context.to_string();
  return fmt::format("{}({}{})", kind->type_name(), fmt::join(names, ", "), about);
}

Tensor make_extension(Ref<Extension> extension, const Tensor& like) {
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, like.device()), like.dtype(), like.device());
  impl->set_geometry(like.sizes(), like.strides());
  impl->set_flags(layer::kExtension);
  impl->box = std::move(extension);
  return Tensor(std::move(impl));
}

// --- what elements it has --------------------------------------------------------------------------------

std::string_view layout_of(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  return extension ? extension->layout() : "strided";
}

Tensor dense_form(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  std::optional<Tensor> dense = extension ? extension->to_dense() : std::nullopt;
  return dense ? dense_form(*dense) : tensor;
}

// --- calls -----------------------------------------------------------------------------------------------

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

void layers::check_decomposable(const Operator& op, Args args) {
  any_extension(args, [&](const Extension& extension) {
    extension.check_decomposable(op);
    return false;
  });
}

namespace {

// `t_` and its like, which handles give to the inner tensors: the whole gets the geometry that they have.
bool changes_geometry(const Operator& op) {
  return op.form() == OpForm::kInplace && op.functional().has(Traits::kView) &&
         !op.has(Traits::kNotDifferentiable);
}

// What an extension holds before such a call, which changes the inner tensors themselves.
Ref<TensorBox> held_before(const Operator& op, Args args) {
  const Extension* extension = changes_geometry(op) ? extension_of(args[0].tensor_ref()) : nullptr;
  if (!extension) return nullptr;
  MaskScope mask(layer::at_and_below(layer::kExtension));
  std::vector<Tensor> inner = extension->inner_tensors();
  for (Tensor& tensor : inner)
    if (tensor.defined()) tensor = alias(tensor);
  return extension->with_inner(std::move(inner));
}

Value answer_by_extension(const Operator& op, Args args) {
  const dispatch::InplaceView view(op, args, held_before(op, args));
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
  if (changes_geometry(op) && extension_of(args[0].tensor_ref())) {
    MaskScope nobody(0);
    run_meta(op, args);
    view.done();
  }
  dispatch::bump_versions(op, args);
  share_storage(op, args, result);
  dispatch::note_views(op, args, result);
  return result;
}

// The recorder that wants the call as it is; null: it waits for those on inner tensors.
Recorder* recorder_of_whole(Args args) {
  const LayerState& state = layer_state();
  if (!(state.active & state.mask & layer::kRecorderLower)) return nullptr;
  Recorder* recorder = Recorder::current(Recorder::Position::kLower);
  bool is_whole = recorder != nullptr;
  for_each_tensor(args, [&](const Tensor& tensor) {
    if (is_whole && extension_of(tensor)) is_whole = recorder->takes_whole(tensor);
  });
  return is_whole ? recorder : nullptr;
}

}  // namespace

Value layers::extension(const Operator& op, Args args) {
  Recorder* recorder = recorder_of_whole(args);
  if (!recorder) [[likely]]
    return answer_by_extension(op, args);
  return recorder->handle(op, args, [&](Args below) {
    MaskScope unrecorded(~layer::kRecorderLower);
    return answer_by_extension(op, below);
  });
}

}  // namespace weft
