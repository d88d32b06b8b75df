#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <typeinfo>
#include <vector>

#include "weft/base/detail/rule.h"
#include "weft/base/function_ref.h"
#include "weft/dispatch/boxing.h"

// Everything weft knows about an operator is one OpDef, written in
// src/ops/families/. In-place and out= forms have their own schemas here; their rules follow from the
// functional form.

namespace weft {

class Operator;
class Level;
struct Lowering;

// What passes and layers may ask about an operator instead of its name.
enum class Traits : uint32_t {
  kNone = 0,
  kPointwise = 1u << 0,  // element i of a result depends on element i of the broadcast inputs only
  kReduction = 1u << 1,
  kView = 1u << 2,           // the results share the storage of the first argument
  kRandom = 1u << 3,         // draws from a generator; see OpDef::draws
  kEffectful = 1u << 4,      // must be kept even when its results are not used
  kDataDependent = 1u << 5,  // sizes or numbers of the result depend on values
  kCommutative = 1u << 6,
  kFactory = 1u << 7,             // makes tensors from no tensors
  kLinear = 1u << 8,              // linear in every differentiable argument taken alone
  kReadsConjNeg = 1u << 9,        // understands lazy conjugate and negative bits
  kThreadSensitive = 1u << 10,    // bits may differ with the number of threads
  kNotDifferentiable = 1u << 11,  // its results never carry a gradient
  kNotBatchable = 1u << 12,
  kUninitialized = 1u << 13,   // values of the result are not defined
  kMayAlias = 1u << 14,        // may return its argument itself (contiguous, reshape, to)
  kCrossesDevices = 1u << 15,  // may read one device and write another (copy_, to)
  kAutocastNarrow = 1u << 16,  // under autocast it runs in the narrow type
  kAutocastWide = 1u << 17,    // under autocast it runs in f32
  kReadsStrides =
      1u << 18,  // a view whose result, or whose right to be one, depends on the strides of its argument
  kGeometry = 1u << 19,        // its kernel changes sizes, strides or storage of its target, and no element
  kNumberOverload = 1u << 20,  // the overload "Tensor" of its name with a number for the second tensor
  kLifts = 1u << 21,           // takes a tensor from outside of the program into it
  kCore = 1u << 22,            // stays in a graph of Core ATen: PyTorch's core table leaves it
  kRecurrent = 1u << 23,       // a layer that goes through a sequence step by step
};
constexpr Traits operator|(Traits a, Traits b) { return Traits(uint32_t(a) | uint32_t(b)); }
constexpr bool operator&(Traits a, Traits b) { return (uint32_t(a) & uint32_t(b)) != 0; }

// A function of an operator in both calling conventions: unboxed, as typed C++, and boxed, over Values.
struct Function {
  const void* typed = nullptr;  // where the typed function's pointer is; its type is `signature`
  Rule<Value(Args)> boxed = nullptr;
  const std::type_info* signature = nullptr;
  explicit operator bool() const { return static_cast<bool>(boxed); }
};
namespace detail {
template <auto fn>
inline constexpr auto function_cell = fn;
}
template <auto fn>
constexpr Function function() {
  using Signature = std::remove_pointer_t<decltype(+fn)>;
  constexpr const void* cell = &detail::function_cell<+fn>;
  return {cell, Rule<Value(Args)>(&boxing::Trampoline<Signature>::call, cell), &typeid(Signature)};
}

// The kernels of an operator's three forms.
struct KernelSet {
  Function functional, inplace, out;
  bool out_type_is_exact = false;  // an out= tensor of another type is refused, not converted to
  // Whether an out= tensor may have this type, where neither of these rules says it.
  bool (*takes_out_type)(Args args, DType made, DType target) = nullptr;
  // Several elements of an out= tensor may share memory: all get one value, or none.
  bool out_may_repeat = false;
  // The out= form cannot write into given memory: it makes its own result and copies that. Other out= forms
  // write into a target that has the result's type and layout and shares no memory with the arguments.
  bool out_copies = false;
};

// --- derivatives -----------------------------------------------------------------------------------------

// Which tensors a vjp reads. Anything else about the inputs and outputs it cannot see, so what a formula
// keeps alive is what it declares.
struct Saves {
  uint32_t inputs = 0, outputs = 0, sizes = 0;
  // Of the first few inputs, the arguments for whose gradients it is read, a bit each; others are for all.
  std::array<uint32_t, 4> readers = {};

  constexpr Saves operator|(Saves o) const {
    Saves both{inputs | o.inputs, outputs | o.outputs, sizes | o.sizes, readers};
    for (size_t i = 0; i < readers.size(); ++i) both.readers[i] |= o.readers[i];
    return both;
  }
  // Whether it is read for the gradients of these arguments, a bit each.
  constexpr bool reads_input(int input, uint32_t wanted) const {
    if (!(inputs >> input & 1)) return false;
    const auto place = static_cast<size_t>(input);
    return place >= readers.size() || (readers[place] & wanted) != 0;
  }
};
template <typename... I>
constexpr Saves inputs(I... i) {
  Saves saves{.inputs = ((1u << i) | ... | 0u)};
  for (size_t at = 0; at < saves.readers.size(); ++at)
    if (saves.inputs >> at & 1) saves.readers[at] = ~0u;
  return saves;
}
// An input that only the gradient of one argument reads: a factor, for that of the other. Where that gradient
// is not wanted, as a frozen weight's, the input is not kept.
constexpr Saves input_for(int input, int argument) {
  Saves saves = inputs(input);
  saves.readers[static_cast<size_t>(input)] = 1u << argument;
  return saves;
}
constexpr Saves each_for_the_other(int a, int b) { return input_for(a, b) | input_for(b, a); }
template <typename... I>
constexpr Saves outputs(I... i) {
  return {.outputs = ((1u << i) | ... | 0u)};
}
// Only dtype, device and sizes of these inputs.
template <typename... I>
constexpr Saves sizes(I... i) {
  return {.sizes = ((1u << i) | ... | 0u)};
}

// What is known of a tensor that was not saved itself.
struct TensorShape {
  DType dtype = DType::kFloat32;
  Device device;
  SymInts sizes;
  SymInts strides;
  SymInt offset = 0;
};

// The view a vjp rule has of a recorded call. Arguments are counted as in the schema.
class Vjp {
 public:
  virtual ~Vjp() = default;
  // The gradient that arrived for a result; undefined when none did.
  virtual const Tensor& grad(int result = 0) const = 0;
  virtual Tensor input(int argument) const = 0;
  virtual std::vector<Tensor> inputs(int argument) const = 0;  // of a Tensor[] argument
  virtual Tensor output(int result = 0) const = 0;
  virtual const TensorShape& shape(int argument) const = 0;
  virtual const TensorShape& shape(int argument, int element) const = 0;  // of a Tensor[] argument
  // Whether the gradient of this tensor argument is wanted.
  virtual bool wants(int argument) const = 0;
  virtual bool wants(int argument, int element) const = 0;
  // Arguments that are not tensors are always there.
  virtual const Value& arg(int argument) const = 0;
  // Whether a tensor argument was given at all, and how many tensors a list argument has.
  virtual bool has(int argument) const = 0;
  virtual int count(int argument) const = 0;

  template <typename T>
  T arg(int argument) const {
    return boxing::Unboxed<T>(arg(argument)).get();
  }
  SymIntSpan sizes(int argument) const { return shape(argument).sizes; }
};

// The gradient for one tensor argument, or for each tensor of a list argument.
struct Grad {
  Grad() = default;
  Grad(Tensor tensor) : tensor(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  Grad(std::vector<Tensor> list)
      : list(std::move(list)), is_list(true) {}  // NOLINT(google-explicit-constructor)
  Tensor tensor;
  std::vector<Tensor> list;
  bool is_list = false;
};
// Gradients in the order of the tensor arguments of the schema; an undefined one is zero. They may have the
// broadcast sizes and the promoted type of the result: autograd sums and casts them to the argument's.
using Grads = std::vector<Grad>;

struct VjpRule {
  Saves saves;
  Rule<Grads(const Vjp&)> rule = nullptr;
  // Results that can carry a gradient; others (indices, masks) are never differentiated.
  uint32_t differentiable_results = ~0u;
  explicit operator bool() const { return static_cast<bool>(rule); }
};

// Forward mode: the tangents of the results from those of the inputs. Reads the same saved things, and
// `tangent(i)`. Where absent, it is derived by transposing the vjp.
class Jvp {
 public:
  virtual ~Jvp() = default;
  virtual Tensor input(int argument) const = 0;
  virtual std::vector<Tensor> inputs(int argument) const = 0;
  virtual Tensor output(int result = 0) const = 0;
  // Undefined for an argument without one (a zero tangent).
  virtual Tensor tangent(int argument) const = 0;
  virtual std::vector<Tensor> tangents(int argument) const = 0;
  virtual const Value& arg(int argument) const = 0;
  virtual Args args() const = 0;
};
using JvpRule = Rule<std::vector<Tensor>(const Jvp&)>;

// --- batching --------------------------------------------------------------------------------------------

// A call under vmap with the wrappers taken off: each tensor argument has its batch dim, or -1 for none.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual const Operator& op() const = 0;
  virtual Args args() const = 0;
  virtual int64_t batch_dim(int argument) const = 0;
  virtual const std::vector<int64_t>& batch_dims(int argument) const = 0;  // of a Tensor[] argument
  virtual SymInt batch_size() const = 0;
  Tensor tensor(int argument) const { return args()[static_cast<size_t>(argument)].to_tensor(); }
  template <typename T>
  T arg(int argument) const {
    return boxing::Unboxed<T>(args()[static_cast<size_t>(argument)]).get();
  }
};
// Results with the batch dim of each, -1 for a result that is the same for the whole batch.
struct Batched {
  Value result;
  std::vector<int64_t> dims;  // one for each tensor in `result`, lists flattened
};
using BatchRule = Rule<Batched(const Batch&)>;

// --- the rest --------------------------------------------------------------------------------------------

// What a call computes, elementwise or as a reduction (src/ops/lowering.h), or why no call can say.
struct LowerRule {
  Rule<Lowering(Args)> of_call = nullptr;
  const char* reason = nullptr;
  explicit operator bool() const { return static_cast<bool>(of_call); }
};

// One example call. Tensors are made anew for each use.
struct Sample {
  std::string name;
  std::vector<Value> args;  // in schema order; trailing defaults may be left out
};
using Samples = std::vector<Sample>;

// A function among the arguments of an operator over functions.
struct Branch {
  size_t argument;         // where it is
  const char* graph_name;  // what its graph is called in a capture, before a number: "true_graph"
  ValueList inputs;        // what it would be called with
  size_t varying = 0;      // how many of them, from the first on, are others in every call
};

// An operator over functions: what it does is in the callables that it is given, so layers ask it instead of
// reading a rule off the table.
struct HigherOrder {
  uint32_t seen_by;  // the layers that meet it as a whole; the others meet what it runs
  Value (*run)(Args args);
  Value (*autograd)(const Operator& op, Args args, FunctionRef<Value(Args)> call_below);
  Value (*vmap)(Level& level, const Operator& op, Args args);
  Value (*jvp)(Level& level, const Operator& op, Args args);
  // Which arguments are functions; recorders make graphs of them, functionalize runs them as values.
  std::vector<Branch> (*branches)(Args args) = nullptr;
  // What it would return, without data.
  Value (*fake)(Args args) = nullptr;
  // What the nodes of its calls are called; empty: the operator's name.
  std::string_view node_name = {};
  // What code calls it; empty: torch.ops.higher_order and its name.
  std::string_view code_name = {};
};

struct OpDef {
  const char* schema;
  const char* inplace = nullptr;
  const char* out = nullptr;
  Traits traits = Traits::kNone;
  // Shape and type of the results, from symbolic sizes. Typed as the kernel, with TensorSpec for Tensor.
  Function meta = {};
  KernelSet kernel = {};
  // Set instead of a kernel where the operator *is* other operators.
  KernelSet composite = {};
  // What a call computes, as formulas; the kernels go through the same function.
  LowerRule lower = {};
  VjpRule vjp = {};
  JvpRule jvp = nullptr;
  BatchRule batch = nullptr;
  // An optional decomposition into core operators.
  Function decompose = {};
  // For a view: the base with `view` scattered into it: (base, view, the other arguments...). For
  // an operator of several views, the number of the view comes third.
  Function inverse = {};
  const HigherOrder* higher_order = nullptr;
  // How many numbers a random operator draws; null: as many as its first result has elements.
  SymInt (*draws)(Args args) = nullptr;
  Samples (*samples)() = nullptr;
};

// Begins the definition of an operator, in namespace weft::ops:
//   WEFT_OPERATOR(add_tensor) = {.schema = "aten::add.Tensor(...)", ...};
// The generator finds the schemas by this word. The extern declaration lets its table refer to the
// definition; the suffix keeps it from hiding the typed function of the same name.
#define WEFT_OPERATOR(name)     \
  extern const OpDef name##_op; \
  constinit const OpDef name##_op

}  // namespace weft
