#include "weft/ops/fake_converter.h"

#include <algorithm>

#include "ops/view_replay.h"
#include "weft/base/error.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft {

FakeRequest FakeRequest::fixed(int64_t dims) {
  FakeRequest request;
  request.dims.assign(static_cast<size_t>(dims), DimRule{.policy = sym::DimPolicy::kStatic});
  return request;
}

const Tensor& FakeConverter::convert(const Tensor& real, const FakeRequest& request) {
  require(real.defined(), "fake: an undefined tensor has no fake");
  if (auto known = inputs_.find(real.impl()->serial()); known != inputs_.end()) return known->second.fake;
  // A conversion asks for others: the base's, inner tensors'.
  Pair pair{real, make(real, request)};
  return inputs_.emplace(real.impl()->serial(), std::move(pair)).first->second.fake;
}

Tensor FakeConverter::convert_again(const Tensor& real, const FakeRequest& request) {
  require(real.defined(), "fake: an undefined tensor has no fake");
  return make(real, request);
}

const Tensor& FakeConverter::convert_constant(const Tensor& real) {
  auto [known, is_new] = constants_.try_emplace(real.impl()->serial());
  Pair& pair = known->second;
  if (is_new) {
    const TensorImpl& from = *real.impl();
    pair = {real,
            plain_tensor(real, {SymInts(from.sizes()), SymInts(from.strides()), from.storage_offset()})};
  }
  return pair.fake;
}

// --- memory ----------------------------------------------------------------------------------------------

const Ref<Storage>& FakeConverter::storage_of(const TensorImpl& real) {
  StoragePair& pair = storages_[real.storage().get()];
  if (!pair.fake) {
    pair = {real.storage(), Storage::without_memory(real.storage()->bytes(), real.device())};
    pair.fake->set_version(real.storage()->version());
  }
  return pair.fake;
}

// --- geometry --------------------------------------------------------------------------------------------

namespace {

// Strides of memory that is not row-major in terms of its sizes: a dim that begins where another one ends has
// that one's extent for its stride. `otherwise` says what one that fits nowhere is.
template <typename F>
SymInts symbolic_strides(const TensorImpl& real, const SymInts& sizes, F otherwise) {
  IntSpan plain = real.sizes().plain(), strides = real.strides().plain();
  std::vector<size_t> order(plain.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  SymInts result(real.strides());
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t d = order[k];
    if (strides[d] < 2) continue;
    auto ends_here = [&](size_t inner) { return plain[inner] * strides[inner] == strides[d]; };
    const auto inner = std::find_if(order.begin(), order.begin() + static_cast<ptrdiff_t>(k), ends_here);
    if (inner != order.begin() + static_cast<ptrdiff_t>(k)) result[d] = sizes[*inner] * result[*inner];
    else result[d] = otherwise(static_cast<int64_t>(d), strides[d]);
  }
  return result;
}

constexpr sym::ValueRange kNotNegative{0, sym::ValueRange::kInf};

}  // namespace

FakeConverter::Geometry FakeConverter::geometry_of(const Tensor& real, const FakeRequest& request) {
  const TensorImpl& from = *real.impl();
  Geometry geometry{SymInts(from.sizes()), SymInts(from.strides()), from.storage_offset()};
  require(request.dims.size() <= geometry.sizes.size(), "{}: {} rules for the sizes of {}",
          request.source.to_string(), request.dims.size(), describe(real));
  if (!env_ || from.is_symbolic()) return geometry;
  bool any_symbol = false;
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    const DimRule rule = d < request.dims.size() ? request.dims[d] : DimRule{};
    geometry.sizes[d] = rule.size ? *rule.size
                                  : env_->create_symbol(from.sizes()[d].plain(),
                                                        request.source.size(static_cast<int64_t>(d)),
                                                        rule.policy, rule.range);
    any_symbol |= rule.policy != sym::DimPolicy::kStatic;
  }
  if (!any_symbol) return geometry;
  // A stride or an offset that sizes do not tell is a number of the input as they are.
  auto stride = [&](int64_t d, int64_t value) {
    return env_->create_value(value, request.source.stride(d), sym::DimPolicy::kDynamic, kNotNegative);
  };
  const SymInts row_major = contiguous_strides(from.sizes());
  const bool is_row_major = std::ranges::equal(from.strides().plain(), SymIntSpan(row_major).plain());
  geometry.strides =
      is_row_major ? contiguous_strides(geometry.sizes) : symbolic_strides(from, geometry.sizes, stride);
  if (!geometry.offset.same_as(0))
    geometry.offset = env_->create_value(from.storage_offset().plain(), request.source.offset(),
                                         sym::DimPolicy::kDynamic, kNotNegative);
  return geometry;
}

// --- tensors ---------------------------------------------------------------------------------------------

namespace {

// What a tensor says of its values and keeps whatever it is a part of.
constexpr uint32_t kKeptFlags =
    tensor_flag::kConjugate | tensor_flag::kNegative | tensor_flag::kWrappedNumber | tensor_flag::kInference;

void set_flags_as(TensorImpl& fake, const TensorImpl& real) {
  fake.clear_flags(kKeptFlags);
  fake.set_flags(layer::kFake | (real.flags() & kKeptFlags));
  if (real.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative)) fake.set_flags(layer::kKernelDetour);
}

// Neither recorders nor transforms see what a conversion calls. They are not active at all: the history of a
// view is made with the whole stack, whatever the mask.
class QuietScope {
 public:
  explicit QuietScope(bool grad_mode) : mask_(kHeard) {
    layer_state().active &= kHeard;
    layer_state().level_depth = 0;
    layer_state().grad_mode = grad_mode;
    layer_state().inference_mode = false;
  }

 private:
  static constexpr uint32_t kHeard = layer::kAutograd | layer::kFake | layer::kKernelDetour;
  LayerStateScope saved_;
  MaskScope mask_;
};

}  // namespace

Tensor FakeConverter::plain_tensor(const Tensor& real, const Geometry& geometry) {
  const TensorImpl& from = *real.impl();
  auto impl = make_ref<TensorImpl>(storage_of(from), from.dtype(), from.device());
  impl->set_geometry(geometry.sizes, geometry.strides, geometry.offset);
  set_flags_as(*impl, from);
  return Tensor(std::move(impl));
}

// One that requires a gradient and is the result of something, which is here a copy.
Tensor FakeConverter::result_of_operator(const Tensor& real, const Geometry& geometry) {
  // Of contiguous memory, whose copy asks no questions about strides.
  const Tensor leaf = plain_tensor(real, {geometry.sizes, contiguous_strides(geometry.sizes), 0});
  leaf.set_requires_grad();
  QuietScope quiet(/*grad_mode=*/true);
  Tensor result = leaf.clone();
  result.impl()->set_storage(storage_of(*real.impl()));
  result.impl()->set_geometry(geometry.sizes, geometry.strides, geometry.offset);
  return result;
}

// The steps are those of the real view where sizes are numbers. Steps over numbers would fix symbols, so that
// a view of symbolic sizes is one step with the symbols.
Tensor FakeConverter::view_of(const Tensor& base, const Tensor& real, const Geometry& geometry) {
  const TensorImpl& from = *real.impl();
  Tensor view = plain_tensor(real, geometry);
  const uint32_t bits = tensor_flag::kConjugate | tensor_flag::kNegative;
  const bool is_geometric = from.dtype() == base.dtype() && (from.flags() & bits) == (base.flags() & bits);
  if (!is_geometric || !(view.is_symbolic() || base.is_symbolic())) {
    ViewStep::attach(with_base(from.view, base), *view.impl());
    return view;
  }
  QuietScope quiet(/*grad_mode=*/false);
  view = as_strided(base, geometry.sizes, geometry.strides, geometry.offset);
  view.impl()->view->creation = from.view->creation;
  return view;
}

Ref<TensorImpl> FakeConverter::extension(const Tensor& real, const FakeRequest& request,
                                         const Geometry& geometry) {
  const Extension& kind = *extension_of(real);
  std::vector<Tensor> inner = kind.inner_tensors();
  const std::vector<std::string> names = kind.inner_names();
  for (size_t i = 0; i < inner.size(); ++i) {
    if (!inner[i].defined()) continue;  // one that this extension does not have
    FakeRequest own(request.source.step("." + names[i]));
    // An inner tensor of the same sizes follows the same rules.
    if (inner[i].dim() == real.dim()) own.dims = request.dims;
    inner[i] = convert(inner[i], own);
  }
  const TensorImpl& from = *real.impl();
  auto impl = make_ref<TensorImpl>(storage_of(from), from.dtype(), from.device());
  impl->set_geometry(geometry.sizes, geometry.strides, geometry.offset);
  if (!from.is_symbolic()) impl->set_numel(from.plain_numel());
  impl->set_flags(layer::kExtension);
  impl->box = kind.with_inner(std::move(inner));
  return impl;
}

Tensor FakeConverter::make(const Tensor& real, const FakeRequest& request) {
  const TensorImpl& from = *real.impl();
  const Geometry geometry = geometry_of(real, request);
  const bool has_gradient = real.requires_grad(), is_leaf = real.is_leaf();
  const bool is_view = from.view && from.view->base.storage() == from.storage() &&
                       (request.brings_base || inputs_.contains(from.view->base.impl()->serial()));
  Tensor fake;
  if (extension_of(real)) {
    fake = Tensor(extension(real, request, geometry));
  } else if (is_view) {
    // The symbols of the view first: they are what the program is given.
    fake = view_of(convert(from.view->base, request.source.step("._base")), real, geometry);
  } else if (has_gradient && !is_leaf) {
    return result_of_operator(real, geometry);
  } else {
    fake = plain_tensor(real, geometry);
  }
  if (!has_gradient) return fake;
  if (is_leaf) return fake.set_requires_grad();
  fake.impl()->set_flags(layer::kAutograd);
  if (!fake.is_view()) {
    fake.impl()->autograd = result_of_operator(real, geometry).impl()->autograd;
    return fake;
  }
  QuietScope quiet(/*grad_mode=*/true);
  fake.is_leaf();  // a view's history follows from its base's, by calls that nobody else sees
  return fake;
}

Tensor shape_only(const Tensor& tensor) {
  const TensorImpl& from = *tensor.impl();
  auto impl = make_ref<TensorImpl>(Storage::without_memory(from.storage()->bytes(), from.device()),
                                   from.dtype(), from.device());
  impl->set_geometry(from.sizes(), from.strides(), from.storage_offset());
  impl->set_flags(layer::kFake);
  return Tensor(std::move(impl));
}

bool detail::is_fake_extension(const Tensor& tensor) {
  const std::vector<Tensor> inner = extension_of(tensor)->inner_tensors();
  return !inner.empty() &&
         std::ranges::all_of(inner, [](const Tensor& t) { return !t.defined() || is_fake(t); });
}

}  // namespace weft
