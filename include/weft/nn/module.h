#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/core/callable.h"
#include "weft/nn/deep_copy.h"
#include "weft/ops/operators.h"

namespace weft::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// What a module owns. Modules are handles: copies share this.
struct ModuleState {
  struct Buffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<Buffer> buffers;
  // A child with its class forgotten: whoever finds it by name can call it.
  struct Child {
    std::string name;
    std::shared_ptr<ModuleState> state;
    Ref<Callable> callable;  // null where forward has no signature that Values can follow
  };
  std::vector<Child> children;
  std::vector<std::pair<std::string, Value>> attributes;  // anything else that has a name
  // The C++ type, without and with its namespaces; empty until its owner or a capture tells. Of a part of a
  // traced module the second is the TorchScript type: "__torch__.___torch_mangle_0.Linear".
  std::string class_name, qualified_class;
  bool training = true;
  // What it does in training or in evaluation is written in a graph: it cannot be switched.
  bool has_fixed_mode = false;
  // The moment when something by a name was replaced last: of two such changes in this process, the later one
  // has the greater number.
  uint64_t last_change = 0;
  void note_change();
  // They may replace arguments and the result.
  using PreHook = std::function<void(ValueList& inputs)>;
  using PostHook = std::function<void(const ValueList& inputs, Value& output)>;
  std::map<uint64_t, PreHook> pre_hooks;
  std::map<uint64_t, PostHook> post_hooks;
  // May replace gradients of the arguments; one is undefined where none was wanted.
  using BackwardHook =
      std::function<void(std::vector<Tensor>& input_gradients, const std::vector<Tensor>& output_gradients)>;
  std::map<uint64_t, BackwardHook> backward_hooks;
  uint64_t next_hook = 1;
};

// A call of a module as someone who watches it sees it.
struct ModuleCall {
  const std::shared_ptr<ModuleState>& module;
  const ArgumentNames& names;
  ValueList args;
  // Runs the hooks and forward.
  FunctionRef<Value(Args)> run;
  // The C++ type of the result: "T" for a tensor, "(TT)" for a tuple of two; "-" for a number or a list of
  // any length, "?" where the type does not tell.
  std::string result_form;
};

// Hears of every call of a module on its thread: captures note where operators come from, or take the call
// as a whole.
class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  virtual Value handle(const ModuleCall& call) = 0;
  // Null: nobody watches.
  static ModuleObserver* current() noexcept { return current_; }

  class Scope {
   public:
    explicit Scope(ModuleObserver* observer) : saved_(std::exchange(current_, observer)) {}
    ~Scope() { current_ = saved_; }
    Scope(const Scope&) = delete;

   private:
    ModuleObserver* saved_;
  };

 private:
  static constinit thread_local ModuleObserver* current_;
};

// What a path leads to, as Module::try_find.
std::optional<Value> try_find(const ModuleState& root, std::string_view path);

// Tells a module its C++ type, unless it knows.
void note_class(ModuleState& module, const std::type_info& type);

namespace detail {

// Calls f with Values as arguments of these types.
template <typename R, typename... A, typename F>
Value call_with(F& f, Args values) {
  weft::detail::check_argument_count(sizeof...(A), values.size());
  return [&]<size_t... i>(std::index_sequence<i...>) -> Value {
    if constexpr (std::is_void_v<R>) {
      f(weft::detail::argument_at<A>(values, i)...);
      return {};
    } else {
      return to_value<std::decay_t<R>>(f(weft::detail::argument_at<A>(values, i)...));
    }
  }(std::index_sequence_for<A...>());
}

template <typename T>
struct ResultForm {
  static std::string text() { return std::is_arithmetic_v<T> ? "-" : "?"; }
};
template <typename T>
struct ResultForm<std::vector<T>> {
  static std::string text() { return "-"; }
};
template <>
struct ResultForm<Tensor> {
  static std::string text() { return "T"; }
};
template <typename... T>
struct ResultForm<std::tuple<T...>> {
  static std::string text() { return "(" + (std::string() + ... + ResultForm<T>::text()) + ")"; }
};
template <typename First, typename Second>
struct ResultForm<std::pair<First, Second>> : ResultForm<std::tuple<First, Second>> {};

template <typename T>
using Argument = typename weft::detail::KeptArgument<std::remove_cvref_t<T>>::Type;

// A module with its class forgotten.
template <typename M, typename R, typename... A>
class ErasedModule final : public ModuleCallable {
 public:
  explicit ErasedModule(Kept<M> module) : module_(std::move(module)) {}
  Value call(Args given) override { return call(given, {}); }
  Value call(Args given, const Kwargs& by_name) override {
    auto run = [&](auto&&... args) { return (*module_)(std::forward<decltype(args)>(args)...); };
    return call_with<R, Argument<A>...>(run, names_.bind(given, by_name));
  }
  const ArgumentNames* argument_names() const override { return &names_; }
  Ref<Callable> copy() const override { return make_ref<ErasedModule>(module_); }

 private:
  Kept<M> module_;
  const ArgumentNames& names_ = ArgumentNames::of(M::argument_names());
};

template <typename M, typename R, typename... A>
Ref<Callable> erased_call_of(M module, R (M::*)(A...)) {
  if constexpr (weft::detail::ConvertsToValue<std::decay_t<R>> &&
                (weft::detail::ConvertsToValue<Argument<A>> && ...))
    return make_ref<ErasedModule<M, R, A...>>(Kept<M>(std::move(module)));
  return nullptr;
}
template <typename M, typename R, typename... A>
Ref<Callable> erased_call_of(M module, R (M::*)(A...) const) {
  return erased_call_of(std::move(module), static_cast<R (M::*)(A...)>(nullptr));
}
// A module as a function of Values; null where forward is not one function.
template <typename M>
Ref<Callable> erased_call(const M& module) {
  if constexpr (requires { module.callable(); }) return module.callable();
  else if constexpr (requires {
                       erased_call_of(module, &M::forward);
                       M::argument_names();
                     })
    return erased_call_of(module, &M::forward);
  else return nullptr;
}

}  // namespace detail

// When anything was replaced in any module of this process last.
uint64_t latest_change();

// A part of a model: parameters, buffers and other modules, under names. A user's module declares its parts
// as members and a `forward`, and names the arguments of forward once:
//
//   struct Net : nn::Module {
//     nn::Linear fc1 = child("fc1", nn::Linear(784, 128));
//     Tensor forward(Tensor x) { return relu(fc1(x)); }
//     WEFT_ARGS(x)
//   };
class Module {
 public:
  Module();
  // A handle to the same module; while a deep copy is made, to the module's copy.
  Module(const Module& other);
  Module(Module&&) = default;
  // Whoever registered a module would keep the one that it had: `replace_child` is for this.
  Module& operator=(const Module&) = delete;
  // Makes this handle one to what `other` owns. An error for a member of another module, as for an
  // assignment.
  void refer_to(const Module& other);
  // A handle to what another module owns.
  static Module over(std::shared_ptr<ModuleState> state) { return Module(std::move(state)); }

  // In the order of registration, children after own ones, with dots between the names. A tensor that has
  // several names comes with the first, or with all of them.
  NamedTensors named_parameters(bool remove_duplicates = true) const;
  NamedTensors named_buffers(bool remove_duplicates = true) const;
  std::vector<Tensor> parameters() const;
  std::vector<std::string> child_names() const;
  // Handles to this module and all below it, parents first, each once.
  std::vector<Module> modules() const;
  // Calls f for each of them, children before their parents: net.apply([](nn::Module& m) { ... }).
  void apply(FunctionRef<void(Module&)> f) const;
  // Puts another module in the place of a child, in the C++ object and under the child's name:
  //   net.replace_child(net.fc, nn::Linear(512, 10));
  // Other handles to the parent keep the member that they have.
  template <typename M>
  void replace_child(M& member, std::type_identity_t<M> module) {
    note_class(*module.state(), typeid(M));
    replace_child(*member.state(), module.state(), detail::erased_call(module));
    module.is_registered_ = true;
    // Made anew: modules are not assigned to.
    std::destroy_at(&member);
    std::construct_at(&member, std::move(module));
  }
  // What the path leads to: a parameter or buffer, an attribute, a child as a function. An error that lists
  // what is there instead.
  Value find(std::string_view path) const;
  // The same; nothing where `find` has an error.
  std::optional<Value> try_find(std::string_view path) const;

  // Parameters and persistent buffers by name.
  NamedTensors state_dict() const;
  // Copies values in by name. Missing and unexpected names, and other sizes, are errors that list them all,
  // unless `strict` is false: then names that do not match are left alone.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  bool is_training() const { return state_->training; }
  // Switches this module and all children between training and evaluation. Those whose mode is fixed stay as
  // they are; of such a module itself it is an error.
  void train(bool training = true);
  void eval() { train(false); }
  void zero_grad();
  void requires_grad(bool wanted);
  // Casts floating parameters and buffers, in place: optimizers and copies of the module see it.
  void to(DType dtype);
  void to(Device device);

  // Hooks run around every call, in the order of registration, and may remove themselves. One on tensors is
  // for modules whose arguments, and whose result, are tensors; any other call of them is an error.
  uint64_t register_forward_pre_hook(ModuleState::PreHook hook);
  uint64_t register_forward_pre_hook(std::function<void(std::vector<Tensor>& inputs)> hook);
  uint64_t register_forward_hook(ModuleState::PostHook hook);
  uint64_t register_forward_hook(std::function<void(const std::vector<Tensor>& inputs, Tensor& output)> hook);
  // Called in backward, when the gradients of the module's tensor arguments are known.
  uint64_t register_backward_hook(ModuleState::BackwardHook hook);
  void remove_hook(uint64_t id);

  const std::shared_ptr<ModuleState>& state() const { return state_; }

 protected:
  // Each registers and returns what it is given.
  Tensor parameter(const std::string& name, Tensor tensor);
  Tensor buffer(const std::string& name, Tensor tensor, bool persistent = true);
  void attribute(const std::string& name, Value value);
  template <typename M>
  M child(const std::string& name, M module) {
    note_class(*module.state(), typeid(M));
    add_child({name, module.state(), detail::erased_call(module)});
    module.is_registered_ = true;
    return module;
  }
  void add_child(ModuleState::Child child);
  // From now on there is no child of that name.
  void remove_child(const std::string& name);

  // Runs forward between the hooks, and in front of whoever watches.
  template <typename F, typename... A>
  auto with_hooks(const std::type_info& type, const char* argument_names, F forward, A&&... args) try {
    using R = decltype(forward(std::forward<A>(args)...));
    if constexpr (weft::detail::ConvertsToValue<R> &&
                  (weft::detail::ConvertsToValue<std::decay_t<A>> && ...)) {
      if (is_watched()) [[unlikely]]
        return weft::detail::result_of_call<R>(watched_call(
            argument_names, {to_value<std::decay_t<A>>(args)...},
            [&](Args values) { return detail::call_with<R, std::decay_t<A>...>(forward, values); },
            &detail::ResultForm<std::decay_t<R>>::text));
    }
    return forward(std::forward<A>(args)...);
  } catch (Error& error) {
    note_module(error, type);
    throw;
  }

  bool is_watched() const;
  Value watched_call(const char* argument_names, ValueList args, FunctionRef<Value(Args)> forward,
                     std::string (*result_form)() = &detail::ResultForm<Value>::text) const;

 private:
  explicit Module(std::shared_ptr<ModuleState> state) : state_(std::move(state)) {}
  void check_new_name(const std::string& name) const;
  void replace_child(const ModuleState& old, std::shared_ptr<ModuleState> state, Ref<Callable> callable);
  void note_module(Error& error, const std::type_info& type) const noexcept;

  std::shared_ptr<ModuleState> state_;
  bool is_registered_ = false;  // this object is a member of the module that registered it
};

// Makes a module callable and names the arguments of its forward, with their defaults. A module is a handle:
// a `const` one can be called too.
#define WEFT_ARGS(...)                                                                          \
  static const char* argument_names() { return #__VA_ARGS__; }                                  \
  template <typename... WeftArgs>                                                               \
  auto operator()(WeftArgs&&... weft_args) const {                                              \
    auto* self = const_cast<std::remove_const_t<std::remove_pointer_t<decltype(this)>>*>(this); \
    return self->with_hooks(                                                                    \
        typeid(*self), argument_names(),                                                        \
        [self](auto&&... a) { return self->forward(std::forward<decltype(a)>(a)...); },         \
        std::forward<WeftArgs>(weft_args)...);                                                  \
  }

}  // namespace weft::nn
