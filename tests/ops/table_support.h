#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>

#include "samples/compare.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"

// What the tests over the whole operator table share: every sample beside every operator as a call, and ways
// to vary its tensors. Nothing here names an operator; a test that must leave one out lists it with the
// reason.

namespace weft::table {

// One sample of one operator.
struct Case {
  const Operator* op;
  size_t index;

  Sample sample() const { return op->def().samples().at(index); }
  std::string name() const { return fmt::format("{}/{}", op->name(), sample().name); }
  // Complete arguments, made anew.
  std::vector<Value> args() const;
};

// Every functional operator. In-place and out= forms follow from them.
inline std::vector<const Operator*> functional_operators() {
  std::vector<const Operator*> found;
  for (const Operator* op : all_operators())
    if (op->form() == OpForm::kFunctional) found.push_back(op);
  return found;
}

// --- findings and exceptions -----------------------------------------------------------------------------

// What is wrong, by operator or by sample.
using Findings = std::map<std::string, std::vector<std::string>>;

// A name ("aten::x" or "aten::x/sample") for which a rule does not hold, and why that is right.
struct Exception {
  std::string name;
  std::string why;
};
using Exceptions = std::vector<Exception>;

// Fails for every finding without an exception, and for every exception that is not needed.
inline void expect_only(const Findings& findings, const Exceptions& exceptions) {
  std::set<std::string> allowed, needed;
  for (const Exception& exception : exceptions) allowed.insert(exception.name);
  for (const auto& [name, texts] : findings) {
    std::string op = name.substr(0, name.find('/'));
    bool is_allowed = false;
    for (const std::string& key : {name, op})
      if (allowed.contains(key)) {
        needed.insert(key);
        is_allowed = true;
      }
    if (is_allowed) continue;
    for (const std::string& text : texts) ADD_FAILURE() << name << ": " << text;
  }
  for (const std::string& name : allowed)
    EXPECT_TRUE(needed.contains(name))
        << name << " is listed as an exception, but the rule holds for it; take it off the list";
}

// Runs `check` on every sample of every operator that `wanted` accepts; an exception is a finding.
inline Findings check_samples(FunctionRef<bool(const Operator&)> wanted,
                              FunctionRef<void(const Case&, std::vector<std::string>&)> check) {
  Findings findings;
  for (const Operator* op : functional_operators()) {
    if (!op->def().samples || !wanted(*op)) continue;
    size_t count = op->def().samples().size();
    for (size_t i = 0; i < count; ++i) {
      Case one{op, i};
      std::vector<std::string> texts;
      try {
        check(one, texts);
      } catch (const std::exception& error) {
        texts.push_back(fmt::format("error: {}", error.what()));
      }
      if (!texts.empty()) findings[one.name()] = texts;
    }
  }
  return findings;
}

// --- tensors inside arguments and results ----------------------------------------------------------------

using weft::tensors_in;

// The same arguments with every tensor replaced by what `f` makes of it.
using weft::map_tensors;

inline bool is_mutable(const Operator& op) { return op.info().is_mutable; }

// --- comparing -------------------------------------------------------------------------------------------

// "is argument 0", "shares argument 1" or "fresh memory".
inline std::string relation_to(const Tensor& result, const std::vector<Tensor>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (result.is_same(arguments[i])) return fmt::format("is argument {}", i);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (result.storage() == arguments[i].storage()) return fmt::format("shares argument {}", i);
  return "fresh memory";
}

// Everything about a tensor but its values; `number` writes sizes.
inline std::string describe_fully(const Tensor& tensor, const std::vector<Tensor>& arguments,
                                  FunctionRef<std::string(const SymInt&)> number) {
  auto list = [&](SymIntSpan values) {
    std::string text;
    for (const SymInt& value : values) text += (text.empty() ? "" : ", ") + number(value);
    return text;
  };
  return fmt::format("{}[{}] strides [{}] offset {} on {}{}{}, {}", short_name(tensor.dtype()),
                     list(tensor.sizes()), list(tensor.strides()), number(tensor.storage_offset()),
                     tensor.device().to_string(), tensor.is_conj() ? " conj" : "",
                     tensor.is_neg() ? " neg" : "", relation_to(tensor, arguments));
}

// The structure of a result with its tensors and integers described.
inline std::string describe_result(const Value& result, const std::vector<Tensor>& arguments,
                                   FunctionRef<std::string(const SymInt&)> number) {
  if (result.is_tensor()) return describe_fully(result.tensor_ref(), arguments, number);
  if (result.is_int()) return number(result.to_sym_int());
  if (!result.is_sequence()) return std::string(result.kind_name());
  std::string text = result.is_list() ? "list(" : "tuple(";
  for (const Value& element : result.elements())
    text += "\n    " + describe_result(element, arguments, number);
  return text + ")";
}
inline std::string plain_number(const SymInt& value) { return value.to_string(); }

// Values of two results: bit for bit, or within the tolerance for a sum in another order.
inline void compare_values(const Value& got, const Value& expected, bool exactly,
                           std::vector<std::string>& texts, const std::string& what) {
  std::vector<Tensor> a = tensors_in(got), b = tensors_in(expected);
  if (a.size() != b.size())
    return texts.push_back(fmt::format("{}: {} tensors, expected {}", what, a.size(), b.size()));
  if (a.empty() && !got.is_sequence() && !(got == expected))
    texts.push_back(fmt::format("{}: got {}, expected {}", what, got.to_string(), expected.to_string()));
  for (size_t i = 0; i < a.size(); ++i) {
    recorded::Elements x = recorded::elements_of(a[i]), y = recorded::elements_of(b[i]);
    if (x.dtype != y.dtype || !(x.sizes == y.sizes)) {
      texts.push_back(fmt::format("{}: result {} is {}, expected {}", what, i, weft::describe(a[i]).str(),
                                  weft::describe(b[i]).str()));
      continue;
    }
    for (size_t k = 0; k < x.count(); ++k) {
      bool same = exactly && !x.is_exact() ? x.text(k) == y.text(k)
                                           : recorded::same_element(x, y, k, tolerance_for(y, 0));
      if (same) continue;
      texts.push_back(
          fmt::format("{}: result {}, element {}: got {}, expected {}", what, i, k, x.text(k), y.text(k)));
      break;
    }
  }
}

inline std::vector<Value> Case::args() const {
  std::vector<Value> args = sample().args;
  for (size_t i = args.size(); i < op->info().defaults.size(); ++i) args.push_back(op->info().defaults[i]);
  // Tensors of samples have equal values at equal indices. Scaled a little, they show which argument went
  // where.
  double factor = 1;
  for (const Tensor& tensor : tensors_in(args)) {
    if (is_differentiable(tensor.dtype()) && factor != 1) {
      GradModeScope no_grad(false);
      mul_(tensor, factor);
    }
    factor *= 0.9375;
  }
  return args;
}

// --- varying tensors -------------------------------------------------------------------------------------

// A copy with fresh memory and the same strides.
inline Tensor duplicate(const Tensor& tensor) {
  auto storage = Storage::allocate(tensor.storage()->bytes(), tensor.device());
  if (storage->bytes()) std::memcpy(storage->data(), tensor.storage()->data(), storage->bytes());
  auto impl = make_ref<TensorImpl>(std::move(storage), tensor.dtype(), tensor.device());
  impl->set_geometry(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  impl->set_flags(tensor.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative |
                                    tensor_flag::kWrappedNumber | layer::kKernelDetour));
  return Tensor(std::move(impl));
}

// The same values in another layout: dims in reverse order, each `step` apart, from `offset` on.
inline Tensor laid_out(const Tensor& tensor, bool reversed, int64_t step, int64_t offset) {
  IntSpan sizes = tensor.plain_sizes();
  Ints strides(sizes.size(), 0);
  int64_t reach = step;
  for (size_t k = 0; k < sizes.size(); ++k) {
    size_t d = reversed ? k : sizes.size() - 1 - k;
    strides[d] = reach;
    reach *= std::max<int64_t>(sizes[d], 1);
  }
  auto storage =
      Storage::allocate(static_cast<size_t>((offset + reach) * item_size(tensor.dtype())), tensor.device());
  std::memset(storage->data(), 0, storage->bytes());
  auto impl = make_ref<TensorImpl>(std::move(storage), tensor.dtype(), tensor.device());
  impl->set_geometry(tensor.sizes(), IntSpan(strides), offset);
  Tensor copy(std::move(impl));
  GradModeScope no_grad(false);
  copy_(copy, tensor);
  return copy;
}

}  // namespace weft::table
