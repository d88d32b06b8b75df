#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  std::vector<std::pair<std::string, std::shared_ptr<ModuleState>>> children;
  bool training = true;
  using PreHook = std::function<void(std::vector<Tensor>& inputs)>;
  using PostHook = std::function<void(const std::vector<Tensor>& inputs, Tensor& output)>;
  std::map<uint64_t, PreHook> pre_hooks;
  std::map<uint64_t, PostHook> post_hooks;
  uint64_t next_hook = 1;
};

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
  Module() : state_(std::make_shared<ModuleState>()) {}

  // In the order of registration, children after own ones, with dots between the names.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> parameters() const;
  std::vector<std::string> child_names() const;

  // Parameters and persistent buffers by name.
  NamedTensors state_dict() const;
  // Copies values in by name. Missing and unexpected names, and other sizes, are errors that list them all,
  // unless `strict` is false: then names that do not match are left alone.
  void load_state_dict(const NamedTensors& state, bool strict = true);

  bool is_training() const { return state_->training; }
  // Switches this module and all children between training and evaluation.
  void train(bool training = true);
  void eval() { train(false); }
  void zero_grad();
  void requires_grad(bool wanted);
  // Casts floating parameters and buffers, in place: optimizers and copies of the module see it.
  void to(DType dtype);
  void to(Device device);

  uint64_t register_forward_pre_hook(ModuleState::PreHook hook);
  uint64_t register_forward_hook(ModuleState::PostHook hook);
  void remove_hook(uint64_t id);

  const std::shared_ptr<ModuleState>& state() const { return state_; }

 protected:
  // Each registers and returns what it is given.
  Tensor parameter(const std::string& name, Tensor tensor);
  Tensor buffer(const std::string& name, Tensor tensor, bool persistent = true);
  template <typename M>
  M child(const std::string& name, M module) {
    add_child(name, module.state());
    return module;
  }
  void add_child(const std::string& name, const std::shared_ptr<ModuleState>& state);

  // Runs forward between the hooks.
  template <typename F, typename... A>
  auto with_hooks(F forward, A&&... args) {
    if constexpr ((std::is_convertible_v<A, Tensor> && ...)) {
      if (!state_->pre_hooks.empty() || !state_->post_hooks.empty()) {
        std::vector<Tensor> inputs{args...};
        for (auto& [id, hook] : state_->pre_hooks) hook(inputs);
        auto output = call(forward, inputs, std::index_sequence_for<A...>{});
        if constexpr (std::is_same_v<decltype(output), Tensor>)
          for (auto& [id, hook] : state_->post_hooks) hook(inputs, output);
        return output;
      }
    }
    return forward(std::forward<A>(args)...);
  }

 private:
  template <typename F, size_t... i>
  static auto call(F& forward, const std::vector<Tensor>& inputs, std::index_sequence<i...>) {
    return forward(inputs[i]...);
  }
  void check_new_name(const std::string& name) const;

  std::shared_ptr<ModuleState> state_;
};

// Makes a module callable and names the arguments of its forward.
#define WEFT_ARGS(...)                                                                          \
  static const char* argument_names() { return #__VA_ARGS__; }                                  \
  template <typename... WeftArgs>                                                               \
  auto operator()(WeftArgs&&... weft_args) {                                                    \
    return with_hooks([this](auto&&... a) { return forward(std::forward<decltype(a)>(a)...); }, \
                      std::forward<WeftArgs>(weft_args)...);                                    \
  }

}  // namespace weft::nn
