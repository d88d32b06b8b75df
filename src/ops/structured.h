#pragma once

#include "weft/base/detail/small_vector.h"
#include "weft/base/function_ref.h"
#include "weft/dispatch/op_def.h"

// Kernels in out-style: a meta function says what the results are, a kernel fills them in. The functional,
// in-place and out= forms of an operator all come from that pair.

namespace weft {

// Whether `self` can take a result of this spec in place; an error in PyTorch's words otherwise.
void check_inplace(const TensorSpec& spec, const Tensor& self);
// Gives `out` the sizes of `spec` (resizing it when they differ) and checks type and device.
void prepare_out(const TensorSpec& spec, const Tensor& out);
// Whether that would resize it.
bool resizes_out(const TensorSpec& spec, const Tensor& out);
// An error: an operand that the call writes over keeps its sizes, as in place.
[[noreturn]] void refuse_resized_operand(const TensorSpec& spec, const Tensor& out);
// Does that, and takes the sizes back when an error leaves its scope.
class PreparedOut {
 public:
  PreparedOut(const TensorSpec& spec, const Tensor& out);
  ~PreparedOut();
  PreparedOut(const PreparedOut&) = delete;
  PreparedOut& operator=(const PreparedOut&) = delete;

 private:
  struct Geometry {
    SymInts sizes, strides;
  };
  const Tensor& out_;
  std::optional<Geometry> before_;  // where it was resized
  int errors_;
};
// The memory into which a kernel writes one of several results: that of the out= tensor where it has the
// result's type and layout and nothing else that the call uses, or else memory that `finish` copies into it.
class OutMemory {
 public:
  OutMemory(const TensorSpec& spec, const Tensor& target, bool is_shared);
  const Tensor& get() const { return own_.defined() ? own_ : target_; }
  void finish();

 private:
  const Tensor& target_;
  Tensor own_;
  std::optional<PreparedOut> prepared_;
};
// Whether the target, which is one of these, has its memory with another of them.
bool shares_with_another(const Tensor& target, std::span<const Tensor* const> targets);
// Whether an out= tensor may have another type than the result, which is then converted.
enum class OutType : uint8_t { kConverted, kExact };
void check_out_type(OutType rule, const TensorSpec& spec, const Tensor& out);
// Whether several elements of an in-place target may share memory (an expanded tensor): they may where the
// kernel writes one value, or writes without reading.
enum class Elements : uint8_t { kDistinct, kMayRepeat };
// An error when two elements of `written` share memory, or when `written` and `read` overlap in part.
void check_overlap(const Tensor& written, const Tensor& read);
void check_no_internal_overlap(const Tensor& written);
// An error when they share memory, all of it or a part.
void check_apart(const Tensor& written, const Tensor& read);
// Whether several elements of `tensor` share memory because a stride is 0.
bool repeats_elements(const Tensor& tensor);
// Whether `a` and `b` share any memory without being the same elements at the same offsets.
bool may_overlap(const Tensor& a, const Tensor& b);
// Copies values, converting the type; sizes must agree. No layers.
void copy_values(const Tensor& target, const Tensor& source);

// The target of a composite in-place form as its composition may keep it: a copy where a gradient is
// recorded, since the composition may save its argument and the target is written over.
Tensor kept_target(const Tensor& self, bool is_recorded);
// Ends of composite in-place and out= forms: checks, then `copy_`, which every layer sees.
const Tensor& copy_composed_inplace(const Tensor& self, const Tensor& result);
const Tensor& copy_composed_out(OutType rule, const Tensor& out, const Tensor& result);

namespace structured_detail {

// The check of `written` against every tensor of an argument.
template <auto check, typename T>
void check_against(const Tensor& written, const T& argument) {
  if constexpr (std::same_as<T, Tensor>) {
    if (argument.defined()) check(written, argument);
  } else if constexpr (std::same_as<T, TensorSpan>) {
    for (const Tensor& tensor : argument)
      if (tensor.defined()) check(written, tensor);
  }
}
template <typename T>
bool shares_memory(const Tensor& written, const T& argument) {
  if constexpr (std::same_as<T, Tensor>) return argument.defined() && argument.storage() == written.storage();
  if constexpr (std::same_as<T, TensorSpan>)
    for (const Tensor& tensor : argument)
      if (tensor.defined() && tensor.storage() == written.storage()) return true;
  return false;
}

// A result of a kernel that goes into a tensor which is there already. `kernel` fills in the tensor it is
// given. One function for all operators and argument types. It lives within one expression, as the spec does.
class TargetWrite {
 public:
  template <typename... A>
  TargetWrite(const TensorSpec& spec, const Tensor& target, bool aliasing_is_safe, const A&... args)
      : spec_(spec), target_(target), aliasing_is_safe_(aliasing_is_safe) {
    (note(args), ...);
  }
  void inplace(Elements elements, FunctionRef<void(const Tensor&)> kernel) const;
  void out(OutType type, FunctionRef<void(const Tensor&)> kernel) const;

 private:
  template <typename T>
  void note(const T& argument) {
    if constexpr (std::same_as<T, Tensor>) {
      if (argument.defined()) operands_.push_back(&argument);
    } else if constexpr (std::same_as<T, TensorSpan>) {
      for (const Tensor& tensor : argument) note(tensor);
    }
  }
  bool shares_with_operands() const;
  void check_overlaps() const;
  void write(FunctionRef<void(const Tensor&)> kernel) const;
  void write_resized(FunctionRef<void(const Tensor&)> kernel) const;

  const TensorSpec& spec_;
  const Tensor& target_;
  const bool aliasing_is_safe_;
  SmallVector<const Tensor*, 4> operands_;
};

template <typename T>
bool requires_grad(const T& argument) {
  if constexpr (std::same_as<T, Tensor>) return argument.requires_grad();
  if constexpr (std::same_as<T, TensorSpan>)
    for (const Tensor& tensor : argument)
      if (tensor.requires_grad()) return true;
  return false;
}

template <auto meta, auto into, bool aliasing_is_safe, OutType out_type, Elements elements,
          typename Signature = decltype(meta)>
struct Forms;

// One result.
template <auto meta, auto into, bool aliasing_is_safe, OutType out_type, Elements elements, typename... A>
struct Forms<meta, into, aliasing_is_safe, out_type, elements, TensorSpec (*)(A...)> {
  static Tensor functional(A... args) {
    Tensor out = allocate(meta(args...));
    into(args..., out);
    return out;
  }
  static const Tensor& inplace(A... args) {
    const Tensor& self = std::get<0>(std::tie(args...));
    TargetWrite(meta(args...), self, aliasing_is_safe, args...).inplace(elements, [&](const Tensor& to) {
      into(args..., to);
    });
    return self;
  }
  static const Tensor& out(A... args, const Tensor& target) {
    TargetWrite(meta(args...), target, aliasing_is_safe, args...).out(out_type, [&](const Tensor& to) {
      into(args..., to);
    });
    return target;
  }
  static constexpr KernelSet set() {
    KernelSet forms{.functional = function<functional>(),
                    .out = function<out>(),
                    .out_type_is_exact = out_type == OutType::kExact};
    if constexpr (sizeof...(A) > 0)
      if constexpr (std::same_as<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<A...>>>, Tensor>)
        forms.inplace = function<inplace>();
    return forms;
  }
};

template <typename S>
using TensorOf = Tensor;

// What of a result that may not be asked for.
inline const TensorSpec* asked(const TensorSpec& spec) { return &spec; }
inline const TensorSpec* asked(const std::optional<TensorSpec>& spec) { return spec ? &*spec : nullptr; }
template <typename S>
Tensor made(const S& spec) {
  return asked(spec) ? allocate(*asked(spec)) : Tensor();
}

// Several results. One that was not asked for is undefined, and its target stays as it is.
template <auto meta, auto into, bool aliasing_is_safe, OutType out_type, Elements elements, typename... S,
          typename... A>
struct Forms<meta, into, aliasing_is_safe, out_type, elements, std::tuple<S...> (*)(A...)> {
  using Results = std::tuple<TensorOf<S>...>;
  static Results functional(A... args) {
    return std::apply(
        [&](const S&... specs) {
          Results results(made(specs)...);
          std::apply([&](const auto&... r) { into(args..., r...); }, results);
          return results;
        },
        meta(args...));
  }
  static Results out(A... args, const TensorOf<S>&... targets) {
    const std::tuple<S...> specs = meta(args...);
    const Tensor* const all[] = {&targets...};
    std::apply([&](const S&... spec) { (check(spec, targets), ...); }, specs);
    std::array<std::optional<OutMemory>, sizeof...(S)> memory;
    size_t next = 0;
    auto choose = [&](const TensorSpec* spec, const Tensor& target) {
      const bool is_read = (shares_memory(target, args) || ...);
      if (spec) memory[next].emplace(*spec, target, is_read || shares_with_another(target, all));
      ++next;
    };
    std::apply([&](const S&... spec) { (choose(asked(spec), targets), ...); }, specs);
    const Tensor none;
    [&]<size_t... i>(std::index_sequence<i...>) {
      into(args..., (memory[i] ? memory[i]->get() : none)...);
    }(std::index_sequence_for<S...>{});
    for (std::optional<OutMemory>& one : memory)
      if (one) one->finish();
    return Results(targets...);
  }
  static void check(const TensorSpec& spec, const Tensor& target) {
    check_no_internal_overlap(target);
    check_out_type(out_type, spec, target);
  }
  static void check(const std::optional<TensorSpec>& spec, const Tensor& target) {
    if (spec) check(*spec, target);
  }
  static constexpr KernelSet set() {
    return {.functional = function<functional>(),
            .out = function<out>(),
            .out_type_is_exact = out_type == OutType::kExact};
  }
};

// A kernel that makes its own result: the other forms copy it.
template <auto fn, OutType out_type, typename Signature = decltype(fn)>
struct Copied;
template <auto fn, OutType out_type, typename... A>
struct Copied<fn, out_type, Tensor (*)(A...)> {
  static const Tensor& inplace(A... args) {
    const Tensor& self = std::get<0>(std::tie(args...));
    Tensor result = fn(args...);
    check_inplace(spec_of(result), self);
    check_no_internal_overlap(self);
    copy_values(self, result);
    return self;
  }
  static const Tensor& out(A... args, const Tensor& target) {
    check_no_internal_overlap(target);
    Tensor result = fn(args...);
    check_out_type(out_type, spec_of(result), target);
    prepare_out(spec_of(result), target);
    copy_values(target, result);
    return target;
  }
  static constexpr KernelSet set() {
    KernelSet forms{.functional = function<fn>(),
                    .out = function<out>(),
                    .out_type_is_exact = out_type == OutType::kExact,
                    .out_copies = true};
    if constexpr (sizeof...(A) > 0)
      if constexpr (std::same_as<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<A...>>>, Tensor>)
        forms.inplace = function<inplace>();
    return forms;
  }
};
template <auto fn, OutType out_type, typename R, typename... A>
struct Copied<fn, out_type, R (*)(A...)> {
  static constexpr KernelSet set() { return {.functional = function<fn>()}; }
};

// The forms of `Base`, whose out= tensor may not alias the first `checked` arguments.
template <typename Base, size_t checked, typename Signature>
struct Apart;
template <typename Base, size_t checked, typename R, typename... A>
struct Apart<Base, checked, R (*)(A...)> {
  static const Tensor& out(A... args, const Tensor& target) {
    size_t i = 0;
    ((i++ < checked ? check_against<check_apart>(target, args) : void()), ...);
    return Base::out(args..., target);
  }
  static constexpr KernelSet set() {
    KernelSet forms = Base::set();
    forms.out = function<out>();
    return forms;
  }
};

// An operator made of others: the other forms copy through operators too, so that every layer sees it.
template <auto fn, OutType out_type, typename Signature = decltype(fn)>
struct Composed;
template <auto fn, OutType out_type, typename... A>
struct Composed<fn, out_type, Tensor (*)(A...)> {
  template <typename... Rest>
  static Tensor call_on(const Tensor& self, const Tensor&, const Rest&... rest) {
    return fn(self, rest...);
  }
  static const Tensor& inplace(A... args) {
    const Tensor& self = std::get<0>(std::tie(args...));
    return copy_composed_inplace(self, call_on(kept_target(self, (requires_grad(args) || ...)), args...));
  }
  static const Tensor& out(A... args, const Tensor& target) {
    return copy_composed_out(out_type, target, fn(args...));
  }
  static constexpr KernelSet set() {
    KernelSet forms{.functional = function<fn>(), .out = function<out>()};
    if constexpr (sizeof...(A) > 0)
      if constexpr (std::same_as<std::remove_cvref_t<std::tuple_element_t<0, std::tuple<A...>>>, Tensor>)
        forms.inplace = function<inplace>();
    return forms;
  }
};
// Several results.
template <auto fn, OutType out_type, typename... R, typename... A>
  requires(std::same_as<R, Tensor> && ...)
struct Composed<fn, out_type, std::tuple<R...> (*)(A...)> {
  static std::tuple<R...> out(A... args, const R&... targets) {
    std::apply([&](const R&... results) { (copy_composed_out(out_type, targets, results), ...); },
               fn(args...));
    return {targets...};
  }
  static constexpr KernelSet set() { return {.functional = function<fn>(), .out = function<out>()}; }
};
template <auto fn, OutType out_type, typename R, typename... A>
struct Composed<fn, out_type, R (*)(A...)> {
  static constexpr KernelSet set() { return {.functional = function<fn>()}; }
};

// A view: the in-place form changes the geometry of the tensor itself.
template <auto fn, typename Signature = decltype(fn)>
struct Viewed;
template <auto fn, typename... A>
struct Viewed<fn, Tensor (*)(A...)> {
  static const Tensor& inplace(A... args) {
    const Tensor& self = std::get<0>(std::tie(args...));
    Tensor view = fn(args...);
    self.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
    return self;
  }
  static constexpr KernelSet set() { return {.functional = function<fn>(), .inplace = function<inplace>()}; }
};
template <auto fn, typename R, typename... A>
struct Viewed<fn, R (*)(A...)> {
  static constexpr KernelSet set() { return {.functional = function<fn>()}; }
};

}  // namespace structured_detail

// The kernels of a view operator: it reads geometry only, so the same function serves as its meta function.
template <auto fn>
constexpr KernelSet view_kernels() {
  return structured_detail::Viewed<+fn>::set();
}

// The out= form that `structured` gives, for those that first look at their arguments or change them.
template <auto meta, auto into, bool aliasing_is_safe = false>
using StructuredForms =
    structured_detail::Forms<+meta, +into, aliasing_is_safe, OutType::kConverted, Elements::kDistinct>;

// All forms of an operator that is made of other operators.
template <auto fn, OutType out_type = OutType::kConverted>
constexpr KernelSet composite() {
  return structured_detail::Composed<+fn, out_type>::set();
}
// The same where an out= tensor must have the result's own type.
template <auto fn>
constexpr KernelSet composite_exact() {
  return composite<fn, OutType::kExact>();
}

// All forms from a meta function and a kernel `void into(args..., const Tensor& out...)`. `aliasing_is_safe`:
// the kernel may write over an input that it reads at the same offset (pointwise ones may).
template <auto meta, auto into, bool aliasing_is_safe = false, OutType out_type = OutType::kConverted,
          Elements elements = Elements::kDistinct>
constexpr KernelSet structured() {
  return structured_detail::Forms<+meta, +into, aliasing_is_safe, out_type, elements>::set();
}
// The same where an out= tensor must have the result's own type.
template <auto meta, auto into, bool aliasing_is_safe = false, Elements elements = Elements::kDistinct>
constexpr KernelSet structured_exact() {
  return structured<meta, into, aliasing_is_safe, OutType::kExact, elements>();
}

// The forms `set` with a functional form, an out= form, or an in-place form of their own.
template <auto fn>
constexpr KernelSet with_functional(KernelSet set) {
  set.functional = function<fn>();
  return set;
}
template <auto fn>
constexpr KernelSet with_out(KernelSet set) {
  set.out = function<fn>();
  return set;
}
template <auto fn>
constexpr KernelSet with_inplace(KernelSet set) {
  set.inplace = function<fn>();
  return set;
}

// The same where an out= tensor that aliases one of the first `checked` arguments is refused.
template <auto meta, auto into, OutType out_type, size_t checked = 64>
constexpr KernelSet structured_apart() {
  return structured_detail::Apart<
      structured_detail::Forms<+meta, +into, false, out_type, Elements::kDistinct>, checked,
      decltype(+meta)>::set();
}

// All forms from a kernel that returns its result.
template <auto fn, OutType out_type = OutType::kConverted>
constexpr KernelSet plain() {
  return structured_detail::Copied<+fn, out_type>::set();
}
// The same where an out= tensor that aliases an argument is refused.
template <auto fn, OutType out_type = OutType::kConverted>
constexpr KernelSet plain_apart() {
  return structured_detail::Apart<structured_detail::Copied<+fn, out_type>, 64, decltype(+fn)>::set();
}

}  // namespace weft
