#include "aot/input_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "aot/functional_values.h"
#include "ops/view_replay.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft::aot {

// --- CheckInputs -----------------------------------------------------------------------------------------

namespace {

ValueList likes_of(const std::vector<CheckInputs::Given>& given) {
  ValueList likes;
  for (const CheckInputs::Given& one : given) likes.push_back(one.like);
  return likes;
}

}  // namespace

CheckInputs::CheckInputs(std::string graph, std::vector<Given> given, bool is_recorded)
    : graph_(std::move(graph)),
      given_(std::move(given)),
      symbols_(likes_of(given_)),
      is_recorded_(is_recorded) {
  for (const Given& one : given_) note_form(one);
}

void CheckInputs::note_form(const Given& given) {
  Form& form = forms_.emplace_back();
  if (!given.like.is_tensor() || !given.like.tensor_ref().defined() || given.like.tensor_ref().is_symbolic())
    return;
  const Tensor& like = given.like.tensor_ref();
  form = {.is_all = given.tree.is_leaf() && !given.is_written && !given.duplicate_of,
          .may_require_grad = given.requires_grad && is_recorded_,
          .dtype = like.dtype(),
          .device = like.device(),
          .first = static_cast<uint32_t>(numbers_.size()),
          .dims = static_cast<uint32_t>(like.dim())};
  for (SymIntSpan list : {like.sizes(), like.strides()})
    for (const SymInt& number : list) numbers_.push_back(number.plain());
}

std::string CheckInputs::text() const { return fmt::format("check {} inputs", given_.size()); }

namespace {

[[noreturn]] void refuse_assumption(const std::string& graph, size_t input, const std::string& assumption) {
  fail(
      "At compilation time, graph {} was compiled under the assumption that input {} would {}, but at "
      "runtime "
      "this was not the case.  This indicates a guard bug in AOTAutograd or Dynamo, please file a bug to "
      "PyTorch.",
      graph, input, assumption);
}

}  // namespace

ValueList CheckInputs::run(Args inputs, const Rest& rest) const {
  require(inputs.size() == given_.size(), "graph {} was compiled for {} inputs, but got {}", graph_,
          given_.size(), inputs.size());
  const bool records = is_grad_enabled();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!has_form(i, inputs[i], records)) check(i, inputs[i], inputs);
  symbols_.check(inputs, graph_);
  return rest(inputs);
}

// Whether an input is what it was, as most inputs of most calls are; `check` has the reasons where it is not.
bool CheckInputs::has_form(size_t index, const Value& input, bool records) const {
  const Form& form = forms_[index];
  if (!form.is_all || !input.is_tensor() || !input.tensor_ref().defined()) return false;
  const TensorImpl& now = *input.tensor_ref().impl();
  const size_t dims = form.dims;
  if (now.dtype() != form.dtype || now.device() != form.device || now.sizes().size() != dims) return false;
  if (now.flags() &
      (records && !form.may_require_grad ? layer::kExtension | layer::kAutograd : layer::kExtension))
    return false;
  // A symbolic size is no number's bit pattern.
  const int64_t *sizes = now.sizes().unsafe_plain().data(), *strides = now.strides().unsafe_plain().data();
  const int64_t* known = numbers_.data() + form.first;
  for (size_t d = 0; d < dims; ++d)
    if (sizes[d] != known[d] || strides[d] != known[dims + d]) return false;
  return true;
}

void CheckInputs::check(size_t index, const Value& input, Args all) const {
  const Given& given = given_[index];
  require(input.is_tensor() == given.like.is_tensor(), "graph {} was compiled for {} as input {}, but got {}",
          graph_, given.like.kind_name(), index, input.kind_name());
  if (!input.is_tensor()) {
    const bool is_symbol = given.like.kind() == Value::Kind::kSymInt;
    require(is_symbol || input == given.like, "graph {} was compiled for {} as input {}, but got {}", graph_,
            given.like.to_string(), index, input.to_string());
    return;
  }
  check_tensor(index, input.tensor_ref());
  if (!given.tree.fits(input))
    fail("graph {} was compiled for {} as input {}, but got {}", graph_, given.tree.to_string(), index,
         ExtensionTree::of(input).to_string());
  if (given.is_written) check_memory(index, all);
  if (given.duplicate_of && !input.tensor_ref().is_same(all[*given.duplicate_of].tensor_ref()))
    refuse_assumption(graph_, index, fmt::format("be a duplicate of input {}", *given.duplicate_of));
}

// A write would not be seen in another input that the graph takes for one of its own.
void CheckInputs::check_memory(size_t index, Args all) const {
  const Tensor& written = all[index].tensor_ref();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == index || !all[i].is_tensor() || given_[i].memory == given_[index].memory) continue;
    require(all[i].tensor_ref().storage() != written.storage() ||
                !may_share_elements(all[i].tensor_ref(), written),
            "graph {} was compiled for inputs {} and {} that share no elements, and writes to input {}, but "
            "now they do; "
            "compile the function again for this call, or clone one of them",
            graph_, index, i, index);
  }
}

void CheckInputs::check_tensor(size_t index, const Tensor& input) const {
  const Tensor& like = given_[index].like.tensor_ref();
  const bool same_sizes =
      input.dim() == like.dim() &&
      std::ranges::equal(like.sizes(), input.sizes(), [](const SymInt& a, const SymInt& b) {
        return a.is_symbolic() || b.is_symbolic() || a.same_as(b);
      });
  require(same_sizes && input.dtype() == like.dtype() && input.device() == like.device(),
          "graph {} was compiled for {} as input {}, but got {}; compile the function again for it, or with "
          "dynamic sizes",
          graph_, describe(like), index, describe(input));
  const bool same_layout = like.is_symbolic() ? like.is_contiguous() == input.is_contiguous()
                                              : same_strides(like.strides(), input.strides(), like.sizes());
  require(same_layout || extension_of(input),
          "graph {} was compiled for strides {} of input {}, but got {}; compile the function again for it, "
          "or make the "
          "input contiguous",
          graph_, describe_sizes(like.strides()), index, describe_sizes(input.strides()));
  if (!is_grad_enabled() || !input.requires_grad()) return;
  if (!given_[index].requires_grad) refuse_assumption(graph_, index, "not require grad");
  require(is_recorded_,
          "graph {} was compiled while gradients were not recorded, but input {} requires a gradient now; "
          "compile "
          "the function again for this call",
          graph_, index);
}

namespace {

void refuse_extensions(const ValueList& inputs, std::string_view how) {
  for (const Value& input : inputs)
    if (input.is_tensor() && input.tensor_ref().defined() && extension_of(input.tensor_ref()))
      unsupported(
          "Encountered {} inputs that are mutated in the graph, but at least one input/output to the graph "
          "is a "
          "tensor subclass. This is not supported today: remove the aliasing, by a clone of one of them",
          how);
}

}  // namespace

// --- DropDuplicates --------------------------------------------------------------------------------------

std::unique_ptr<DropDuplicates> DropDuplicates::needed_for(const ValueList& inputs,
                                                           const CallDescription& description) {
  auto step = std::make_unique<DropDuplicates>();
  bool is_needed = false;
  std::map<const TensorImpl*, size_t> seen;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl* tensor = inputs[i].is_tensor() ? inputs[i].tensor_ref().impl() : nullptr;
    const auto known = tensor ? seen.find(tensor) : seen.end();
    if (known != seen.end()) {
      step->first_.push_back(known->second);
      is_needed |= description.inputs[i].is_changed();
      continue;
    }
    if (tensor) seen.emplace(tensor, step->kept_.size());
    step->first_.push_back(step->kept_.size());
    step->kept_.push_back(i);
  }
  if (!is_needed) return nullptr;
  refuse_extensions(inputs, "duplicated");
  return step;
}

std::string DropDuplicates::text() const {
  return fmt::format("drop duplicates: {} of {} inputs are left", kept_.size(), first_.size());
}

ValueList DropDuplicates::without_duplicates(Args inputs) const {
  ValueList left;
  for (size_t input : kept_) left.push_back(inputs[input]);
  return left;
}

ValueFunction DropDuplicates::over_the_rest(ValueFunction f) const {
  return [f = std::move(f), first = first_](Args left) {
    ValueList all;
    for (size_t index : first) all.push_back(left[index]);
    return f(all);
  };
}

ValueList DropDuplicates::run(Args inputs, const Rest& rest) const {
  return rest(without_duplicates(inputs));
}

// --- SyntheticBases --------------------------------------------------------------------------------------

namespace {

// The tensor that all of these look at: the one they are views of, or else all of their storage.
Tensor base_of(const std::vector<Tensor>& tensors) {
  Tensor base;
  for (const Tensor& tensor : tensors)
    if (tensor.impl()->view) base = tensor.impl()->view->base;
  if (base.defined()) {
    for (const Tensor& tensor : tensors)
      require(tensor.is_same(base) || (tensor.impl()->view && tensor.impl()->view->base.is_same(base)),
              "inputs that share elements, one of which is written to, must be views of one tensor, but {} "
              "is not "
              "a view of {}",
              describe(tensor), describe(base));
    return base;
  }
  const Tensor& first = tensors.front();
  const int64_t elements = static_cast<int64_t>(first.storage()->bytes()) / item_size(first.dtype());
  for (const Tensor& tensor : tensors)
    if (tensor.dtype() != first.dtype())
      unsupported(
          "inputs of types {} and {} share elements, and one of them is written to; clone one of them",
          dtype_name(first.dtype()), dtype_name(tensor.dtype()));
  return alias_with(first, SymInts{elements}, SymInts{1}, 0);
}

// Inputs by the storage they look at, in the order of their first member.
std::vector<std::vector<size_t>> by_storage(const ValueList& inputs) {
  std::vector<std::vector<size_t>> groups;
  std::map<const Storage*, size_t> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor() || !inputs[i].tensor_ref().defined()) continue;
    auto [found, is_new] = known.try_emplace(inputs[i].tensor_ref().storage().get(), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  return groups;
}

// Extensions share what their inner tensors share.
bool share_elements(const Tensor& a, const Tensor& b) {
  const Extension *left = extension_of(a), *right = extension_of(b);
  if (!left || !right) return may_share_elements(a, b);
  for (const Tensor& x : left->inner_tensors())
    for (const Tensor& y : right->inner_tensors())
      if (x.defined() && y.defined() && share_elements(x, y)) return true;
  return false;
}

// The members of a group that share elements with another one.
std::vector<size_t> overlapping(const std::vector<size_t>& group, const ValueList& inputs) {
  std::vector<size_t> members;
  for (size_t i : group)
    for (size_t j : group)
      if (i != j && share_elements(inputs[i].tensor_ref(), inputs[j].tensor_ref())) {
        members.push_back(i);
        break;
      }
  return members;
}

}  // namespace

namespace {

// The new values of such inputs are written into their common base, whose gradient would have to be put
// together from parts that are extensions.
void refuse_views_of_extension(const std::vector<size_t>& sharing, const ValueList& inputs,
                               const CallDescription& description) {
  for (size_t i : sharing)
    if (description.needs_backward && description.inputs[i].requires_grad &&
        extension_of(inputs[i].tensor_ref()))
      unsupported(
          "inputs {} are views of one {}, are written to and require gradients: weft attempted to compile "
          "the "
          "backward with incorrect subclass metadata. Write to clones of them",
          fmt::format("{}", fmt::join(sharing, ", ")), extension_of(inputs[i].tensor_ref())->type_name());
}

}  // namespace

std::unique_ptr<SyntheticBases> SyntheticBases::needed_for(const ValueList& inputs,
                                                           const CallDescription& description) {
  auto step = std::make_unique<SyntheticBases>();
  std::vector<bool> is_grouped(inputs.size(), false);
  for (const std::vector<size_t>& sharing : by_storage(inputs)) {
    auto is_written = [&](size_t i) { return description.inputs[i].is_written; };
    if (sharing.size() < 2 || std::ranges::none_of(sharing, is_written)) continue;
    std::vector<size_t> members = overlapping(sharing, inputs);
    if (members.empty()) refuse_views_of_extension(sharing, inputs, description);
    if (std::ranges::none_of(members, is_written)) continue;
    // The whole base is written back: whatever else of its memory is written to is a part of it, too.
    for (size_t i : sharing)
      if (is_written(i) && std::ranges::find(members, i) == members.end()) members.push_back(i);
    std::vector<Tensor> likes;
    for (size_t i : members) {
      is_grouped[i] = true;
      likes.push_back(shape_like(inputs[i].tensor_ref()));
    }
    step->groups_.push_back(members);
    step->likes_.push_back(std::move(likes));
  }
  if (step->groups_.empty()) return nullptr;
  refuse_extensions(inputs, "aliased");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputUse& use = description.inputs[i];
    if (!is_grouped[i]) step->others_.push_back(i);
    else if (use.changes_metadata) step->changed_.push_back({i, use.is_leaf && use.requires_grad});
  }
  for (size_t i = 0; i < description.outputs.size(); ++i) {
    const OutputOrigin& origin = description.outputs[i];
    if (origin.kind == OutputOrigin::Kind::kInput && is_grouped[origin.source])
      step->returned_.push_back({i, origin.source});
  }
  return step;
}

std::string SyntheticBases::text() const {
  std::vector<std::string> groups;
  for (const std::vector<size_t>& group : groups_)
    groups.push_back(fmt::format("{}", fmt::join(group, ", ")));
  return fmt::format("synthetic bases: of inputs {}", fmt::join(groups, "; of inputs "));
}

ValueList SyntheticBases::with_bases(Args inputs) const {
  ValueList all;
  for (const std::vector<size_t>& group : groups_) {
    std::vector<Tensor> members;
    for (size_t i : group) members.push_back(inputs[i].to_tensor());
    all.emplace_back(base_of(members));
  }
  for (size_t i : others_) all.push_back(inputs[i]);
  return all;
}

ValueFunction SyntheticBases::over_bases(ValueFunction f, const ValueList& inputs) const {
  return [f = std::move(f), inputs, groups = groups_, others = others_,
          changed = changed_](Args given) -> Value {
    ValueList all(inputs.size());
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t i : groups[g]) {
        const Tensor& like = inputs[i].tensor_ref();
        all[i] = as_strided(given[g].tensor_ref(), like.sizes(), like.strides(), like.storage_offset());
      }
    for (size_t i = 0; i < others.size(); ++i) all[others[i]] = given[groups.size() + i];
    Value result = f(all);
    if (changed.empty()) return result;
    ValueList geometries;
    for (const Changed& one : changed) geometries.push_back(all[one.input]);
    return Value::tuple({std::move(result), Value::list(std::move(geometries))});
  };
}

// The graph knows where in their base the members are.
void SyntheticBases::check_geometry(Args inputs) const {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (size_t i = 0; i < groups_[g].size(); ++i) {
      const Tensor &input = inputs[groups_[g][i]].tensor_ref(), &like = likes_[g][i];
      require(input.storage() == inputs[groups_[g][0]].tensor_ref().storage(),
              "inputs {} shared their memory when the function was compiled, but now input {} has its own; "
              "compile the "
              "function again for this call",
              fmt::format("{}", fmt::join(groups_[g], ", ")), groups_[g][i]);
      require(std::ranges::equal(input.plain_sizes(), like.plain_sizes()) &&
                  same_strides(input.strides(), like.strides(), like.sizes()) &&
                  input.storage_offset().same_as(like.storage_offset()),
              "input {} was another part of the memory that it shares with others when the function was "
              "compiled; compile "
              "the function again for this call",
              groups_[g][i]);
    }
}

ValueList SyntheticBases::run(Args inputs, const Rest& rest) const {
  check_geometry(inputs);
  for (const Changed& changed : changed_) count_change(inputs[changed.input].tensor_ref());
  ValueList outputs = rest(with_bases(inputs));
  const size_t own = outputs.size() - changed_.size();
  for (size_t i = 0; i < changed_.size(); ++i)
    take_geometry(inputs[changed_[i].input].tensor_ref(), outputs[own + i].tensor_ref(),
                  changed_[i].is_silent);
  outputs.resize(own);
  for (const Returned& returned : returned_) outputs[returned.output] = inputs[returned.input];
  return outputs;
}

void count_change(const Tensor& tensor) { tensor.impl()->bump_version(); }

void change_geometry(const Tensor& tensor, const Ref<ViewStep>& steps, bool is_silent) {
  take_geometry(tensor, replay_view(steps, detach(tensor)), is_silent);
}

void take_geometry(const Tensor& tensor, const Tensor& after, bool is_silent) {
  const uint32_t version = tensor.storage()->version();
  GradModeScope recording(is_grad_enabled() && !is_silent);
  as_strided_(tensor, after.sizes(), after.strides(), after.storage_offset());
  tensor.storage()->set_version(version);
}

}  // namespace weft::aot
