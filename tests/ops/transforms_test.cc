// Every operator under vmap and jvp, by its samples.
#include "ops/gradient_support.h"
#include "weft/func/func.h"

namespace weft::table {
namespace {

using func::Tensors;

// The arguments with their tensors, in order, replaced by `tensors`.
std::vector<Value> with_tensors(const std::vector<Value>& args, const Tensors& tensors) {
  size_t next = 0;
  return map_tensors(args, [&](const Tensor&) { return tensors.at(next++); });
}

func::Fn function_of(const Operator& op, const std::vector<Value>& args) {
  return [&op, args](const Tensors& tensors) { return tensors_in(call(op, with_tensors(args, tensors))); };
}

bool is_pure(const Operator& op) {
  return !op.has(Traits::kRandom) && !op.has(Traits::kUninitialized) && !is_mutable(op) &&
         !op.has(Traits::kFactory);
}

// --- vmap ------------------------------------------------------------------------------------------------

constexpr int64_t kBatch = 3;

// Example `b`: the same values, moved along by b elements, so that they stay in the operator's domain.
Tensor example(const Tensor& tensor, int64_t b) {
  Tensor dense = laid_out(tensor, false, 1, 0), moved = laid_out(tensor, false, 1, 0);
  auto width = static_cast<size_t>(item_size(tensor.dtype()));
  auto count = static_cast<size_t>(tensor.plain_numel());
  auto* from = static_cast<const char*>(dense.raw_data());
  auto* to = static_cast<char*>(moved.raw_data());
  for (size_t i = 0; i < count; ++i)
    std::memcpy(to + i * width, from + (i + static_cast<size_t>(b)) % count * width, width);
  return moved;
}

// All examples in one tensor, with the batch dim at `dim`.
Tensor batch_of(const Tensor& tensor, int64_t dim) {
  SymInts sizes(tensor.sizes());
  SymInts batched;
  for (int64_t d = 0; d <= tensor.dim(); ++d) {
    if (d == dim) batched.push_back(kBatch);
    if (d < tensor.dim()) batched.push_back(sizes[static_cast<size_t>(d)]);
  }
  Tensor all = allocate_contiguous(batched, tensor.dtype());
  GradModeScope no_grad(false);
  for (int64_t b = 0; b < kBatch; ++b) copy_(select(all, dim, b), example(tensor, b));
  return all;
}

struct Mapping {
  std::string name;
  std::vector<bool> is_batched;
  bool at_end = false;  // where the batch dim of the arguments is
};
std::vector<Mapping> mappings_of(size_t tensors) {
  std::vector<Mapping> mappings = {{"all", std::vector<bool>(tensors, true)},
                                   {"all, last dim", std::vector<bool>(tensors, true), true}};
  for (size_t i = 0; tensors > 1 && i < tensors; ++i) {
    Mapping one{fmt::format("only tensor {}", i), std::vector<bool>(tensors, false)};
    one.is_batched[i] = true;
    mappings.push_back(std::move(one));
  }
  return mappings;
}

void check_mapping(const Case& one, const Mapping& mapping, std::vector<std::string>& texts) {
  std::vector<Value> args = one.args();
  Tensors tensors = tensors_in(args), batched;
  func::VmapOptions options;
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t dim = mapping.at_end ? tensors[i].dim() : 0;
    batched.push_back(mapping.is_batched[i] ? batch_of(tensors[i], dim) : laid_out(tensors[i], false, 1, 0));
    options.in_dims.push_back(mapping.is_batched[i] ? dim : func::kNoDim);
  }
  Tensors results;
  try {
    results = func::vmap(function_of(*one.op, args), options)(batched);
  } catch (const Error& error) {
    return texts.push_back(fmt::format("{}: error: {}", mapping.name, error.what()));
  }
  for (int64_t b = 0; b < kBatch; ++b) {
    Tensors each;
    for (size_t i = 0; i < tensors.size(); ++i)
      each.push_back(mapping.is_batched[i] ? example(tensors[i], b) : laid_out(tensors[i], false, 1, 0));
    Tensors expected = tensors_in(call(*one.op, with_tensors(args, each))), got;
    for (const Tensor& result : results) got.push_back(select(result, 0, b));
    size_t before = texts.size();
    compare_values(Value::list_of(got), Value::list_of(expected), false, texts,
                   fmt::format("{}, example {}", mapping.name, b));
    if (texts.size() > before) return;
  }
}

TEST(Vmap, GivesWhatALoopGives) {
  auto wanted = [](const Operator& op) {
    return is_pure(op) && !op.has(Traits::kNotBatchable) && !op.has(Traits::kDataDependent);
  };
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    GradModeScope no_grad(false);
    size_t count = tensors_in(one.args()).size();
    if (count == 0) return;
    for (const Mapping& mapping : mappings_of(count)) check_mapping(one, mapping, texts);
  };
  expect_only(
      check_samples(wanted, check),
      {{"aten::as_strided", "with the batch dim last, the memory that strides count in is another one"},
       {"aten::native_batch_norm", "in training, statistics that are the same for all examples are refused"},
       {"aten::batch_norm", "likewise"},
       {"aten::_batch_norm_impl_index", "likewise"},
       {"aten::_embedding_bag", "the offsets of the other examples do not begin at 0"},
       {"aten::_embedding_bag_forward_only", "likewise"},
       {"aten::embedding_bag", "likewise"},
       {"aten::embedding_bag.padding_idx", "likewise"},
       {"aten::view_as_complex", "with the batch dim last, the two parts of a number are not adjacent"},
       {"aten::view.dtype", "with the batch dim last, the bytes of an element are not adjacent"}});
}

// --- jvp -------------------------------------------------------------------------------------------------

void check_jvp(const Operator& op, const std::vector<Value>& args, std::vector<std::string>& texts) {
  GradModeScope no_grad(false);
  Tensors inputs = tensors_in(args), primals, tangents;
  std::vector<size_t> differentiable;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!takes_gradient(op, args, inputs[i])) continue;
    differentiable.push_back(i);
    primals.push_back(inputs[i]);
    tangents.push_back(weights_like(inputs[i]));
  }
  if (primals.empty()) return;
  auto f = [&](const Tensors& varied) {
    Tensors complete = inputs;
    for (size_t i = 0; i < differentiable.size(); ++i) complete[differentiable[i]] = varied[i];
    return tensors_in(call(op, with_tensors(args, complete)));
  };
  auto [values, derivatives] = func::jvp(func::Fn(f), primals, tangents);
  auto moved = [&](double step) {
    Tensors varied;
    for (size_t i = 0; i < primals.size(); ++i) {
      Tensor copy = duplicate(primals[i]);
      std::vector<double*> to = parts_of(copy), along = parts_of(tangents[i]);
      for (size_t k = 0; k < to.size(); ++k) *to[k] += step * *along[k];
      varied.push_back(copy);
    }
    return f(varied);
  };
  constexpr double kStep = 1e-6;
  Tensors above = moved(kStep), below = moved(-kStep);
  for (size_t i = 0; i < values.size(); ++i) {
    bool carries = op.is_composite() || (op.def().vjp.differentiable_results >> std::min<size_t>(i, 31) & 1);
    if (!carries || (values[i].dtype() != kFloat64 && values[i].dtype() != kComplex128)) continue;
    recorded::Elements high = recorded::elements_of(above[i]), low = recorded::elements_of(below[i]);
    std::vector<double> expected;
    for (size_t k = 0; k < high.numbers.size(); ++k) {
      expected.push_back((high.numbers[k].re - low.numbers[k].re) / (2 * kStep));
      if (values[i].is_complex()) expected.push_back((high.numbers[k].im - low.numbers[k].im) / (2 * kStep));
    }
    compare_gradient(fmt::format("derivative of result {}", i), derivatives[i], values[i], expected, texts);
  }
}
bool has_jvp(const Operator& op) { return is_pure(op) && !op.has(Traits::kNotDifferentiable); }

TEST(Jvp, AgreesWithFiniteDifferences) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    check_jvp(*one.op, map_tensors(in_double(one.args()), duplicate), texts);
  };
  const char* saved = "it also returns the statistics of native_batch_norm, which carry no derivative";
  expect_only(check_samples(has_jvp, check),
              both(kSavedStatistics, {{"aten::_batch_norm_impl_index", saved}}));
}

TEST(Jvp, OfComplexNumbersAgreesWithFiniteDifferences) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> args = in_complex(one.args());
    if (accepts(*one.op, args)) check_jvp(*one.op, args, texts);
  };
  expect_only(check_samples(has_jvp, check), {});
}

}  // namespace
}  // namespace weft::table
