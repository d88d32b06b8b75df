#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/core/callable.h"
#include "weft/core/tensor.h"

namespace weft::nn {

struct ModuleState;

// A module as a function of Values.
struct ModuleCallable : Callable {
  // While a DeepCopy is open on this thread: the same function of the module's copy.
  virtual Ref<Callable> copy() const = 0;
  // Whether C++ code runs it, and not a graph.
  virtual bool is_code() const { return true; }
};

struct DeepCopyOptions {
  bool share_code = false;  // children that run C++ code, and graphs that call such, are the same ones
};

// A deep copy of a module that is being made: while it lives, the copy constructors of modules on this thread
// give handles to the copies. What `deep_copy(module)` works with.
class DeepCopy {
 public:
  explicit DeepCopy(const std::shared_ptr<ModuleState>& root, DeepCopyOptions options = {});
  ~DeepCopy();
  DeepCopy(const DeepCopy&) = delete;
  // Null: modules are copied as the handles that they are.
  static DeepCopy* current() noexcept { return current_; }

  // The copy of what a module owns, with all that is below it; made when it is first asked for.
  std::shared_ptr<ModuleState> state(const std::shared_ptr<ModuleState>& from);
  // Null for one that has no copy.
  std::shared_ptr<ModuleState> find_state(const ModuleState* from) const;
  // The copy of a tensor: one tensor stays one, and tensors that share memory share the copy of it.
  Tensor tensor(const Tensor& from);
  // The copy of anything else that handles share, made once.
  std::shared_ptr<void> shared(const std::shared_ptr<void>& from, FunctionRef<std::shared_ptr<void>()> make);

  // Puts the copies of a module's tensors where a fresh copy of its C++ object has the tensors themselves.
  // C++ has no list of an object's members. But a Tensor is a word with the tensor's address, and the number
  // of handles that each tensor got while the object was copied says whether all of them were found.
  class Members {
   public:
    // Before the object is copied.
    Members(DeepCopy& copy, const ModuleState& module);
    ~Members();
    // The object was made in memory that was `cleared`: an empty optional would show what was there before.
    void rebind(void* object, size_t bytes);
    static void clear(void* memory, size_t bytes);

   private:
    void note(const ModuleState& module, const std::string& prefix);

    struct Entries;
    DeepCopy& copy_;
    const ModuleState& module_;
    std::unique_ptr<Entries> entries_;
  };

 private:
  Tensor copy_memory(const Tensor& tensor);
  Value value(const Value& from);
  void copy_functions();
  void copy_functions(ModuleState& made);

  static constinit thread_local DeepCopy* current_;
  DeepCopy* outer_;
  const DeepCopyOptions options_;
  struct Copies;
  std::unique_ptr<Copies> copies_;
  int depth_ = 0;  // of states that are being copied
};

namespace detail {

// A copy of a module's object. In a deep copy its tensors are the copy's.
template <typename M>
M copied(const M& module) {
  DeepCopy* copy = DeepCopy::current();
  if (!copy) return module;
  DeepCopy::Members members(*copy, *module.state());
  alignas(M) std::byte memory[sizeof(M)];
  DeepCopy::Members::clear(memory, sizeof(M));
  struct Destroy {
    M* object;
    ~Destroy() { std::destroy_at(object); }
  } made{std::construct_at(reinterpret_cast<M*>(memory), module)};
  members.rebind(made.object, sizeof(M));
  return std::move(*made.object);
}

// A module where a deep copy could not find it otherwise: in a function, on the heap.
template <typename M>
class Kept {
 public:
  explicit Kept(M module) : module_(std::move(module)) {}
  Kept(const Kept& other) : module_(copied(other.module_)) {}
  Kept(Kept&&) = default;
  Kept& operator=(const Kept&) = default;
  Kept& operator=(Kept&&) = default;
  M& operator*() { return module_; }
  const M& operator*() const { return module_; }

 private:
  M module_;
};

}  // namespace detail

// The module with tensors, children and C++ objects of its own, as Python's copy.deepcopy. What is shared
// inside stays so: tied weights, views, one module under two names. Hooks come along, and of what they keep
// by value modules are copied. Gradients do not come along.
//
// The C++ object is copied by its copy constructor, so that members of other types are what that makes of
// them: a Tensor that was not registered, or a pointer, is shared. Parameters, buffers and modules are
// members, or modules in a Sequential or ModuleList; an error names one that is kept elsewhere. Nobody else
// may use the module meanwhile.
//   Net twin = nn::deep_copy(net);
template <typename M>
M deep_copy(const M& module) {
  DeepCopy scope(module.state());
  return detail::copied(module);
}

}  // namespace weft::nn
