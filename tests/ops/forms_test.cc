// The forms of an operator agree: in-place and out= with the functional one, any layout of the inputs with a
// dense one, and a decomposition with the kernel.
#include "ops/gradient_support.h"
#include "ops/support/type_promotion.h"
#include "weft/base/allocator.h"
#include "weft/ops/fake.h"

namespace weft::table {
namespace {

bool has_defined_values(const Operator& op) {
  return !op.has(Traits::kRandom) && !op.has(Traits::kUninitialized);
}

// The overload of `form` beside a functional one; null if there is none.
const Operator* form_of(const Operator& op, OpForm form) {
  const char* text = form == OpForm::kInplace ? op.def().inplace : op.def().out;
  if (!text) return nullptr;
  std::string_view schema(text);
  return find_operator(schema.substr(0, schema.find('(')));
}

Value call_without_grad(const Operator& op, const std::vector<Value>& args) {
  GradModeScope no_grad(false);
  return call(op, args);
}

size_t written_argument(const Operator& op) {
  const auto& written = op.info().written;
  return static_cast<size_t>(std::find(written.begin(), written.end(), 1) - written.begin());
}

Tensor converted(const Tensor& tensor, DType dtype) {
  GradModeScope no_grad(false);
  Tensor copy = allocate_contiguous(tensor.sizes(), dtype);
  copy_(copy, tensor);
  return copy;
}

bool fits_in_place(const Tensor& result, const Tensor& self) {
  return can_cast(result.dtype(), self.dtype()) &&
         std::ranges::equal(result.plain_sizes(), self.plain_sizes());
}

// --- in-place --------------------------------------------------------------------------------------------

TEST(InPlace, GivesTheValuesOfTheFunctionalForm) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const Operator& inplace = *form_of(*one.op, OpForm::kInplace);
    size_t at = written_argument(inplace);
    for (bool strided : {false, true}) {
      std::vector<Value> args = one.args();
      if (!args[at].is_tensor()) return;
      if (strided) args[at] = laid_out(args[at].to_tensor(), true, 2, 1);
      Tensor self = args[at].to_tensor();
      std::vector<Value> before = map_tensors(args, duplicate);
      Value expected = call_without_grad(*one.op, before);
      uint32_t version = self.version();
      if (!one.op->has(Traits::kView) && !fits_in_place(expected.to_tensor(), self)) {
        EXPECT_THROW(call_without_grad(inplace, args), UserError)
            << one.name() << ": its result does not fit, and no error came";
        continue;
      }
      Value result = call_without_grad(inplace, args);
      if (!result.is_tensor() || !result.tensor_ref().is_same(self))
        texts.push_back("does not return its argument");
      // What only leaves a history behind (detach_) writes nothing.
      const bool writes = !(one.op->has(Traits::kView) && one.op->has(Traits::kNotDifferentiable));
      if ((self.version() != version) != writes)
        texts.push_back(writes ? "does not count as a write" : "counts as a write");
      if (one.op->has(Traits::kView)) {
        Tensor view = expected.to_tensor();
        auto geometry = [](const Tensor& t) { return describe_fully(t, {}, plain_number); };
        if (geometry(self) != geometry(view))
          texts.push_back(fmt::format("got {}, expected {}", geometry(self), geometry(view)));
      }
      if (has_defined_values(*one.op))
        compare_values(self, converted(expected.to_tensor(), self.dtype()), true, texts,
                       strided ? "strided target" : "target");
    }
  };
  // Those that give a tensor other sizes or other memory have tests of their own.
  auto wanted = [](const Operator& op) {
    return form_of(op, OpForm::kInplace) && !op.has(Traits::kGeometry);
  };
  expect_only(check_samples(wanted, check),
              {{"aten::dropout/eval", "nothing is dropped, so nothing is written"},
               {"aten::abs/complex", "the magnitude is real: PyTorch refuses to write it in place"}});
}

TEST(InPlace, GivesTheGradientsOfTheFunctionalForm) {
  auto wanted = [](const Operator& op) {
    return form_of(op, OpForm::kInplace) && !op.has(Traits::kNotDifferentiable) && has_defined_values(op);
  };
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const Operator& inplace = *form_of(*one.op, OpForm::kInplace);
    size_t at = written_argument(inplace);
    std::vector<Value> args = in_double(one.args());
    std::vector<Tensor> leaves = differentiable_in(*one.op, args);
    if (leaves.empty() || !args[at].is_tensor() || !is_differentiable(args[at].to_tensor().dtype())) return;
    for (const Tensor& leaf : leaves) leaf.set_requires_grad();
    Tensor expected = call(*one.op, args).to_tensor();
    if (!expected.requires_grad() ||
        !(one.op->has(Traits::kView) || fits_in_place(expected, args[at].to_tensor())) ||
        expected.dtype() != args[at].to_tensor().dtype())
      return;
    Tensor target = clone(args[at].to_tensor());  // a leaf that requires a gradient cannot be written
    std::vector<Value> written = args;
    written[at] = target;
    call(inplace, written);
    Tensor weights = weights_like(expected);
    auto functional = autograd::grad({expected}, leaves, {weights}, {.allow_unused = true});
    auto in_place = autograd::grad({target}, leaves, {weights}, {.allow_unused = true});
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (functional[i].defined() != in_place[i].defined())
        texts.push_back(fmt::format("gradient {}: only one form has it", i));
      else if (functional[i].defined())
        compare_values(in_place[i], functional[i], false, texts, fmt::format("gradient {}", i));
    }
  };
  expect_only(check_samples(wanted, check), {});
}

// --- out= ------------------------------------------------------------------------------------------------

// The arguments of the out= overload: those of the functional one by name, and `outs` where it writes.
std::vector<Value> with_outs(const Operator& functional, const Operator& out, const std::vector<Value>& args,
                             const std::vector<Tensor>& outs) {
  std::vector<Value> complete;
  size_t next = 0;
  for (size_t i = 0; i < out.schema().arguments.size(); ++i) {
    const Argument& argument = out.schema().arguments[i];
    // A written argument that the functional form has too (running statistics) is no out= target.
    if (std::optional<size_t> at = functional.schema().argument_index(argument.name)) {
      complete.push_back(args.at(*at));
    } else if (argument.type.is_list()) {
      complete.push_back(Value::list_of(outs));
    } else {
      complete.push_back(outs.at(next++));
    }
  }
  return complete;
}

void check_out(const Case& one, bool resize, std::vector<std::string>& texts) {
  const Operator& out = *form_of(*one.op, OpForm::kOut);
  std::vector<Value> args = one.args();
  Value expected = call_without_grad(*one.op, map_tensors(args, duplicate));
  std::vector<Tensor> outs;
  for (const Tensor& result : tensors_in(expected))
    outs.push_back(resize ? allocate_contiguous({0}, result.dtype())
                          : laid_out(converted(result, result.dtype()), true, 2, 1));
  std::vector<std::string> before;
  for (const Tensor& tensor : outs) before.push_back(describe_fully(tensor, {}, plain_number));
  Value result = call_without_grad(out, with_outs(*one.op, out, args, outs));
  std::vector<Tensor> results = tensors_in(result);
  for (size_t i = 0; i < outs.size(); ++i) {
    bool returns_it = out.schema().returns.empty() || (i < results.size() && results[i].is_same(outs[i]));
    if (!returns_it) texts.push_back(fmt::format("result {} is not the tensor that was given", i));
    std::string after = describe_fully(outs[i], {}, plain_number);
    if (!resize && after != before[i])
      texts.push_back(fmt::format("changed the layout of its target: {}, now {}", before[i], after));
    if (outs[i].version() == 0) texts.push_back("does not count as a write");
  }
  if (has_defined_values(*one.op))
    compare_values(Value::list_of(outs), Value::list_of(tensors_in(expected)), true, texts,
                   resize ? "resized" : "strided target");
}

bool has_out(const Operator& op) { return form_of(op, OpForm::kOut) != nullptr; }

TEST(Out, ResizesAndFillsAnEmptyTensor) {
  expect_only(check_samples(has_out, [](const Case& one,
                                        std::vector<std::string>& texts) { check_out(one, true, texts); }),
              {});
}

TEST(Out, FillsATensorOfAnyLayout) {
  expect_only(check_samples(has_out, [](const Case& one,
                                        std::vector<std::string>& texts) { check_out(one, false, texts); }),
              {});
}

// How many blocks of memory a call asks for.
uint64_t allocations_of(const Operator& op, const std::vector<Value>& args) {
  const uint64_t before = allocator_stats().allocations;
  const Value result = call_without_grad(op, args);
  return allocator_stats().allocations - before;
}

// A plan of memory can only use an out= form that needs no more than the functional form does beside its
// results.
TEST(Out, WritesIntoAFittingTargetDirectly) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const Operator& out = *form_of(*one.op, OpForm::kOut);
    const std::vector<Value> args = one.args();
    auto fresh = [&] { return map_tensors(args, duplicate); };  // some write running statistics
    const Value expected = call_without_grad(*one.op, fresh());
    std::vector<Tensor> outs;
    uint64_t results = 0;
    for (const Tensor& result : tensors_in(expected)) {
      auto impl = make_ref<TensorImpl>(Storage::allocate(result.storage()->bytes(), result.device()),
                                       result.dtype(), result.device());
      impl->set_geometry(result.sizes(), result.strides(), result.storage_offset());
      outs.emplace_back(std::move(impl));
      std::memset(outs.back().storage()->data(), 0x5a, outs.back().storage()->bytes());
      results += outs.back().storage()->bytes() > 0;
    }
    // The first calls may also fill caches.
    std::vector<Value> first = fresh(), second = fresh();
    call_without_grad(out, with_outs(*one.op, out, fresh(), outs));
    const uint64_t functional = allocations_of(*one.op, first);
    const uint64_t direct = allocations_of(out, with_outs(*one.op, out, second, outs));
    if (direct + results > functional)
      texts.push_back(
          fmt::format("{} blocks of memory, {} for {} results without out=", direct, functional, results));
    if (has_defined_values(*one.op))
      compare_values(Value::list_of(outs), Value::list_of(tensors_in(expected)), true, texts,
                     "fitting target");
  };
  auto wanted = [](const Operator& op) {
    return has_out(op) && op.def().kernel.out && !op.def().kernel.out_copies;
  };
  expect_only(check_samples(wanted, check), {});
}

TEST(Out, CopiesOnlyWhereMemoryCannotBeGiven) {
  std::vector<std::string> names;
  for (const Operator* op : functional_operators())
    if (op->def().kernel.out_copies) names.emplace_back(op->name());
  // Sizes that only data can tell, and elements that are found by their offset in the storage of an argument.
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("aten::nonzero", "aten::masked_select",
                                                     "aten::repeat_interleave.Tensor",
                                                     "aten::as_strided_scatter", "aten::resize"));
}

// What an out= call says to targets of a wider type, and whether they are then as they should be.
std::string answer_to_wider_targets(const Case& one, FunctionRef<Tensor(const Tensor&)> place) {
  const Operator& out = *form_of(*one.op, OpForm::kOut);
  std::vector<Value> args = one.args();
  std::vector<Tensor> outs;
  for (const Tensor& result : tensors_in(call_without_grad(*one.op, map_tensors(args, duplicate)))) {
    DType wider = result.dtype() < kFloat32 ? kFloat64 : kComplex128;
    outs.push_back(place(allocate_contiguous(result.sizes(), wider)));
  }
  try {
    call_without_grad(out, with_outs(*one.op, out, map_tensors(args, place), outs));
  } catch (const UserError&) {
    return "refused";
  }
  return "converted";
}

TEST(Out, OfAWiderTypeIsTheSameToFakeTensors) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::string real = answer_to_wider_targets(one, [](const Tensor& t) { return t; });
    std::string fake = answer_to_wider_targets(
        one, [](const Tensor& t) { return FakeMode({.allow_real_inputs = true}).fake_of(t); });
    if (real != fake) texts.push_back(fmt::format("real tensors are {}, fake ones {}", real, fake));
  };
  auto wanted = [](const Operator& op) { return has_out(op) && !op.has(Traits::kDataDependent); };
  expect_only(
      check_samples(wanted, check),
      {{"aten::bernoulli/plain", "zeros and ones go into any real type, but not into a complex one"}});
}

// --- layouts ---------------------------------------------------------------------------------------------

TEST(Layouts, DoNotChangeValues) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> expected_args = map_tensors(one.args(), duplicate);
    Value expected = call_without_grad(*one.op, expected_args);
    struct Variant {
      const char* name;
      bool reversed;
      int64_t step, offset;
    };
    for (const Variant& variant : {Variant{"transposed", true, 1, 0}, Variant{"every other", false, 2, 0},
                                   Variant{"offset", false, 1, 3}, Variant{"all three", true, 2, 5}}) {
      std::vector<Value> args = map_tensors(one.args(), [&](const Tensor& t) -> Tensor {
        return t.dim() == 0 ? t : laid_out(t, variant.reversed, variant.step, variant.offset);
      });
      Value result;
      try {
        result = call_without_grad(*one.op, args);
      } catch (const UserError&) {
        if (one.op->has(Traits::kView)) continue;  // not every layout can be seen in every way
        throw;
      }
      compare_values(result, expected, false, texts, variant.name);
      compare_values(Value::list(args), Value::list(expected_args), true, texts,
                     fmt::format("arguments after {}", variant.name));
    }
  };
  expect_only(check_samples(has_defined_values, check),
              {{"aten::as_strided", "it reads memory, whatever layout the tensor has"},
               {"aten::as_strided_scatter", "it writes to memory, whatever layout the tensor has"},
               {"aten::resize", "it reads memory, whatever layout the tensor has"},
               {"aten::resize_as", "it reads memory, whatever layout the tensor has"},
               {"aten::set_.source_Tensor_storage_offset", "it reads memory, whatever layout the tensor has"},
               {"aten::stride.int", "the layout is what it reads"},
               {"aten::sym_stride.int", "the layout is what it reads"},
               {"aten::storage_offset", "the layout is what it reads"},
               {"aten::sym_storage_offset", "the layout is what it reads"},
               {"aten::_unsafe_view", "not every layout can be seen in every way"},
               {"aten::view_as", "not every layout can be seen in every way"}});
}

// --- decompositions --------------------------------------------------------------------------------------

TEST(Decompositions, GiveWhatTheKernelGives) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    GradModeScope no_grad(false);
    std::vector<Value> args = one.args(), other = one.args();
    Value expected = call(*one.op, args), got = one.op->def().decompose.boxed(other);
    std::string a = describe_result(got, tensors_in(other), plain_number),
                b = describe_result(expected, tensors_in(args), plain_number);
    if (a != b) texts.push_back(fmt::format("\n  decomposed: {}\n  kernel:     {}", a, b));
    else compare_values(got, expected, false, texts, "values");
  };
  expect_only(
      check_samples(
          [](const Operator& op) { return static_cast<bool>(op.def().decompose) && has_defined_values(op); },
          check),
      {});
}

}  // namespace
}  // namespace weft::table
