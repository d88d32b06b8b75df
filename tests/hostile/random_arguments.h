#pragma once

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "weft/core/from_data.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"

// Arguments that a careless or hostile program might give an operator, drawn from a seed: sizes of zero, no
// dims at all, integers at the ends of their range, NaN, types and sizes that do not go together, memory that
// is written to and read from.

namespace weft::hostile {

struct OperatorCall {
  const Operator* op;
  ValueList args;

  std::string to_string() const {
    std::string text = std::string(op->name()) + "(";
    for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i].to_string();
    return text + ")";
  }
};

class RandomArguments {
  uint64_t below(size_t end) { return random_() % end; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <typename List>
  auto one_of(const List& list) {
    return std::data(list)[below(std::size(list))];
  }

 public:
  explicit RandomArguments(uint64_t seed) : random_(seed) {}

  // A call of one of these: a sample beside the operator with some arguments changed, or all of them drawn.
  OperatorCall call_of_any(const std::vector<const Operator*>& ops) {
    const Operator& op = *one_of(ops);
    return {&op, one_in(4) ? drawn_arguments(op) : changed_sample(op)};
  }

 private:
  // --- whole calls ---------------------------------------------------------------------------------------

  ValueList drawn_arguments(const Operator& op) {
    ValueList args;
    for (const Argument& argument : op.schema().arguments) args.push_back(value_of(argument.type, args));
    return args;
  }

  ValueList changed_sample(const Operator& op) {
    const Operator& functional = op.functional();
    if (!functional.def().samples) return drawn_arguments(op);
    const Samples samples = functional.def().samples();
    if (samples.empty()) return drawn_arguments(op);
    const std::vector<Value>& given = samples[below(samples.size())].args;
    ValueList args;
    for (const Argument& argument : op.schema().arguments) {
      const std::optional<size_t> at = functional.schema().argument_index(argument.name);
      if (at && *at < given.size()) args.push_back(given[*at]);
      else if (at) args.push_back(functional.info().defaults[*at]);
      else args.push_back(value_of(argument.type, args));
    }
    if (args.empty()) return args;
    for (size_t changes = below(3); changes > 0; --changes) {
      const size_t at = below(args.size());
      args[at] = changed(op.schema().arguments[at].type, args[at], args);
    }
    return args;
  }

  Value changed(const Type& type, const Value& value, const ValueList& others) {
    if (value.is_tensor() && !one_in(3)) return changed_tensor(value.tensor_ref());
    if (value.is_list() && !value.elements().empty() && !one_in(3)) {
      ValueList elements = value.elements();
      const size_t at = below(elements.size());
      const Type& inner = type.is_optional() ? type.element() : type;
      if (inner.is_list()) elements[at] = changed(inner.element(), elements[at], others);
      return Value::list(std::move(elements));
    }
    return value_of(type, others);
  }

  // --- values by type ------------------------------------------------------------------------------------

  Value value_of(const Type& type, const ValueList& others) {
    if (one_in(100)) return of_any_kind();
    switch (type.kind()) {
      case Type::Kind::kOptional:
        return one_in(3) ? Value() : value_of(type.element(), others);
      case Type::Kind::kList:
        return list_of(type, others);
      case Type::Kind::kTensor:
        return one_in(50) ? Value() : tensor_or_alias(others);
      case Type::Kind::kInt:
      case Type::Kind::kSymInt:
        return integer();
      case Type::Kind::kFloat:
      case Type::Kind::kSymFloat:
        return real();
      case Type::Kind::kBool:
      case Type::Kind::kSymBool:
        return one_in(2);
      case Type::Kind::kScalar:
      case Type::Kind::kComplex:
        return scalar();
      case Type::Kind::kString:
        return word();
      case Type::Kind::kScalarType:
        return dtype();
      case Type::Kind::kDevice:
        return one_in(8) ? Device(DeviceType::kMeta) : kCpu;
      case Type::Kind::kLayout:
        return Layout::kStrided;
      case Type::Kind::kMemoryFormat:
        return one_of(kFormats);
      case Type::Kind::kGenerator:
        return one_in(2) ? Value() : Value(Generator(random_()));
      default:
        return of_any_kind();
    }
  }

  Value of_any_kind() {
    switch (below(8)) {
      case 0:
        return integer();
      case 1:
        return real();
      case 2:
        return word();
      case 3:
        return one_in(2);
      case 4:
        return Value::list({integer(), integer()});
      case 5:
        return tensor();
      case 6:
        return Dict{{"a", 1}};
      default:
        return {};
    }
  }

  Value list_of(const Type& type, const ValueList& others) {
    const size_t declared = static_cast<size_t>(type.list_size().value_or(2));
    const size_t count = one_in(2) ? declared : below(6);
    ValueList elements;
    for (size_t i = 0; i < count; ++i) elements.push_back(value_of(type.element(), others));
    return Value::list(std::move(elements));
  }

  int64_t integer() {
    constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(),
                      kHighest = std::numeric_limits<int64_t>::max();
    constexpr int64_t kExtreme[] = {kLowest,
                                    kLowest + 1,
                                    kHighest,
                                    kHighest - 1,
                                    int64_t{1} << 62,
                                    -(int64_t{1} << 62),
                                    (int64_t{1} << 62) - 1,
                                    int64_t{1} << 31,
                                    (int64_t{1} << 31) - 1,
                                    -(int64_t{1} << 31),
                                    int64_t{1} << 32,
                                    int64_t{1} << 40,
                                    kHighest / 2,
                                    kHighest / 3,
                                    kHighest / 4 + 1};
    if (one_in(5)) return one_of(kExtreme);
    if (one_in(8)) return static_cast<int64_t>(below(2000));
    return static_cast<int64_t>(below(9)) - 3;
  }

  double real() {
    using Limits = std::numeric_limits<double>;
    constexpr double kReals[] = {0.,
                                 -0.,
                                 1.,
                                 -1.,
                                 .5,
                                 2.,
                                 -2.5,
                                 1e-5,
                                 1e30,
                                 -1e300,
                                 1e19,
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::quiet_NaN(),
                                 Limits::min(),
                                 Limits::denorm_min(),
                                 Limits::max()};
    return one_of(kReals);
  }

  Value scalar() {
    switch (below(5)) {
      case 0:
        return one_in(2);
      case 1:
        return Complex<double>(real(), real());
      case 2:
        return real();
      default:
        return integer();
    }
  }

  std::string word() {
    constexpr const char* kWords[] = {"",        "none",  "mean", "sum",  "tanh",     "trunc", "floor",
                                      "reflect", "valid", "same", "sum_", "\xff\x01", "ij",    "xy"};
    return one_of(kWords);
  }

  DType dtype() { return static_cast<DType>(below(kDTypeCount)); }

  // --- tensors -------------------------------------------------------------------------------------------

  // One of what the call has already, or a view of it, so that it is written to and read from.
  Value tensor_or_alias(const ValueList& others) {
    const std::vector<Tensor> seen = tensors_in(others);
    if (seen.empty() || !one_in(3)) return tensor();
    const Tensor other = one_of(seen);
    return one_in(2) ? other : view_of(other);
  }

  Tensor tensor() {
    Tensor made = filled(sizes(), dtype());
    return one_in(3) ? view_of(made) : made;
  }

  Tensor changed_tensor(const Tensor& tensor) {
    switch (below(5)) {
      case 0:
        return filled(Ints(tensor.plain_sizes()), dtype());
      case 1:
        return filled(sizes(), tensor.dtype());
      case 2:
        return filled(other_sizes(Ints(tensor.plain_sizes())), tensor.dtype());
      case 3:
        return filled(Ints(tensor.plain_sizes()), tensor.dtype());
      default:
        return view_of(tensor);
    }
  }

  Ints sizes() {
    Ints sizes;
    const size_t rank = one_in(12) ? below(9) : below(5);
    for (size_t d = 0; d < rank; ++d) sizes.push_back(one_in(7) ? 0 : 1 + static_cast<int64_t>(below(4)));
    return sizes;
  }
  Ints other_sizes(Ints sizes) {
    if (sizes.empty()) return {0};
    const size_t at = below(sizes.size());
    if (one_in(3)) sizes.erase(at);
    else sizes[at] = static_cast<int64_t>(below(6));
    return sizes;
  }

  Tensor filled(const Ints& sizes, DType dtype) {
    GradModeScope no_grad(false);
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    if (!is_differentiable(dtype)) return from_data(integers(count), IntSpan(sizes)).to(dtype);
    std::vector<double> values;
    const bool is_tame = one_in(2);
    for (int64_t i = 0; i < count; ++i)
      values.push_back(is_tame ? static_cast<double>(below(100)) / 8 : one_in(2) ? 1. : real());
    return from_data(values, IntSpan(sizes)).to(dtype);
  }
  // Most often something that can be an index.
  std::vector<int64_t> integers(int64_t count) {
    std::vector<int64_t> values;
    const bool is_tame = !one_in(3);
    for (int64_t i = 0; i < count; ++i)
      values.push_back(is_tame ? static_cast<int64_t>(below(2)) : integer());
    return values;
  }

  Tensor view_of(const Tensor& tensor) {
    GradModeScope no_grad(false);
    const int64_t rank = tensor.dim();
    if (rank == 0) return one_in(2) ? tensor.expand({3}) : tensor.unsqueeze(0);
    const auto dim = static_cast<int64_t>(below(static_cast<size_t>(rank)));
    switch (below(7)) {
      case 0:
        return tensor.transpose(dim, 0);
      case 1:
        return tensor.slice(dim, static_cast<int64_t>(below(3)), std::nullopt, 1 + int64_t(below(2)));
      case 2:
        return tensor.size(dim) > 0 ? tensor.select(dim, -1) : tensor;
      case 3:
        return tensor.unsqueeze(dim).transpose(0, dim);
      case 4:
        return is_complex(tensor.dtype()) ? conj(tensor) : tensor.narrow(dim, 0, 0);
      case 5:
        return is_complex(tensor.dtype()) ? imag(conj(tensor)) : tensor.narrow(dim, 0, 0).unsqueeze(dim);
      default:
        return tensor.narrow(dim, 0, tensor.size(dim) > 0 ? 1 : 0).expand_as(tensor);
    }
  }

  static constexpr MemoryFormat kFormats[] = {MemoryFormat::kContiguous, MemoryFormat::kPreserve,
                                              MemoryFormat::kChannelsLast};
  std::mt19937_64 random_;
};

}  // namespace weft::hostile
