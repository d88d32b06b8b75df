// Every out= form on its operator's samples, with targets that fit and targets that do not: fake tensors,
// functionalize and captured graphs answer as eager execution does.
#include "ops/table_support.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"
#include "weft/ops/fake.h"

namespace weft::table {
namespace {

using OutTensors = std::vector<Tensor>;

const Operator* out_form(const Operator& op) {
  if (!op.def().out) return nullptr;
  std::string_view schema(op.def().out);
  return find_operator(schema.substr(0, schema.find('(')));
}

bool has_values(const Operator& op) { return !op.has(Traits::kRandom) && !op.has(Traits::kUninitialized); }

// The arguments of the out= form: those of the functional one by name, and the targets where it writes.
ValueList out_arguments(const Operator& op, const Operator& out, const std::vector<Value>& args,
                        const OutTensors& targets) {
  ValueList complete;
  size_t next = 0;
  for (const Argument& argument : out.schema().arguments) {
    if (std::optional<size_t> at = op.schema().argument_index(argument.name)) complete.push_back(args[*at]);
    else if (argument.type.is_list()) complete.push_back(Value::list_of(targets));
    else complete.push_back(targets.at(next++));
  }
  return complete;
}

struct Target {
  const char* name;
  Tensor (*make)(const Tensor& result);
  bool other_type = false;
};
Tensor zeros_of(SymIntSpan sizes, DType dtype) { return zeros(sizes, dtype); }
constexpr Target kTargets[] = {
    {"right", [](const Tensor& r) { return zeros_of(r.sizes(), r.dtype()); }},
    {"strided", [](const Tensor& r) { return laid_out(zeros_of(r.sizes(), r.dtype()), true, 2, 1); }},
    {"empty", [](const Tensor& r) { return zeros_of({0}, r.dtype()); }},
    {"large", [](const Tensor& r) { return zeros_of({r.plain_numel() + 7, 2}, r.dtype()); }},
    {"one", [](const Tensor& r) { return zeros_of({1}, r.dtype()); }},
    {"deep", [](const Tensor& r) { return zeros_of({2, 1, 1, 3, 1}, r.dtype()); }},
    {"strided, of other sizes",
     [](const Tensor& r) { return laid_out(zeros_of({3, r.plain_numel() + 1}, r.dtype()), true, 2, 1); }},
    {"expanded", [](const Tensor& r) { return zeros_of({}, r.dtype()).expand(SymInts(r.sizes())); }},
    {"expanded, of other sizes", [](const Tensor& r) { return zeros_of({1}, r.dtype()).expand({5}); }},
    {"half", [](const Tensor& r) { return zeros_of(r.sizes(), kFloat16); }, true},
    {"half, of other sizes", [](const Tensor&) { return zeros_of({2, 7}, kFloat16); }, true},
    {"bool", [](const Tensor& r) { return zeros_of(r.sizes(), kBool); }, true},
    {"long", [](const Tensor& r) { return zeros_of(r.sizes(), kInt64); }, true},
    {"long, of other sizes", [](const Tensor&) { return zeros_of({2, 7}, kInt64); }, true},
    {"double", [](const Tensor& r) { return zeros_of(r.sizes(), kFloat64); }, true},
    {"bytes", [](const Tensor& r) { return zeros_of(r.sizes(), kUInt8); }, true},
    {"complex", [](const Tensor& r) { return zeros_of(r.sizes(), kComplex64); }, true},
};

// What a call makes of its targets; "refused" for a user's mistake.
struct Answer {
  std::string text;
  OutTensors targets;
};

template <typename F>
Answer answer_of(const F& run) {
  GradModeScope no_grad(false);
  try {
    return run();
  } catch (const UserError&) {
    return {"refused", {}};
  }
}

std::string geometry_of(const OutTensors& targets) {
  std::string text;
  for (const Tensor& t : targets) text += describe_fully(t, {}, plain_number) + "; ";
  return text;
}

// Whether the call gives its targets back; forms without results give nothing.
std::string identity_of(const Operator& out, const Value& result, const OutTensors& targets) {
  if (out.schema().returns.empty()) return "";
  OutTensors given = tensors_in(result);
  if (given.size() != targets.size()) return "other results";
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i].is_same(targets[i])) return "not its target";
  return "";
}

struct OutCase {
  const Operator& op;
  const Operator& out;
  std::vector<Value> args;
  OutTensors targets;

  ValueList complete() const { return out_arguments(op, out, args, targets); }
};

Answer eager(const OutCase& one) {
  Value result = call(one.out, one.complete());
  return {geometry_of(one.targets) + identity_of(one.out, result, one.targets), one.targets};
}

Answer fake(const OutCase& one) {
  FakeMode mode;
  auto faked = [&](const Tensor& t) { return mode.fake_of(t); };
  OutTensors targets;
  for (const Tensor& t : one.targets) targets.push_back(faked(t));
  OutCase inner{one.op, one.out, map_tensors(one.args, faked), targets};
  Value result = call(one.out, inner.complete());
  return {geometry_of(targets) + identity_of(one.out, result, targets), {}};
}

// As the program under functionalize sees its targets, and what is in them.
Answer functional(const OutCase& one) {
  auto wrap = [](const Tensor& t) { return func::to_functional(t, func::FunctionalPosition::kLower); };
  OutTensors targets, values;
  for (const Tensor& t : one.targets) targets.push_back(wrap(t));
  OutCase inner{one.op, one.out, map_tensors(one.args, wrap), targets};
  Value result = call(one.out, inner.complete());
  for (const Tensor& t : targets) values.push_back(func::from_functional(t));
  return {geometry_of(targets) + identity_of(one.out, result, targets), values};
}

// The graph of the call on targets, run on others.
Answer captured(const OutCase& one) {
  auto program = [&](const OutTensors& targets) {
    call(one.out, OutCase{one.op, one.out, one.args, targets}.complete());
    return targets;
  };
  OutTensors fresh;
  for (const Tensor& t : one.targets) fresh.push_back(duplicate(t));
  auto by_values = [&](Args given) {
    OutTensors targets;
    for (const Value& value : given) targets.push_back(value.to_tensor());
    program(targets);
    return Value::tuple({targets.begin(), targets.end()});
  };
  GraphModule graph =
      GraphMaker(by_values, {.allow_data_reads = true}).capture({one.targets.begin(), one.targets.end()});
  graph.call(ValueList(fresh.begin(), fresh.end()));
  return {geometry_of(fresh), fresh};
}

void compare_answers(const char* what, const Target& target, const Answer& got, const Answer& expected,
                     bool values, std::vector<std::string>& texts) {
  const std::string name = fmt::format("{}, target {}", what, target.name);
  if (got.text != expected.text)
    return texts.push_back(fmt::format("{}: {} instead of {}", name, got.text, expected.text));
  if (values && !got.targets.empty())
    compare_values(Value::list_of(got.targets), Value::list_of(expected.targets), true, texts, name);
}

void check_targets(const Case& one, std::vector<std::string>& texts) {
  const Operator& out = *out_form(*one.op);
  OutTensors results;
  {
    GradModeScope no_grad(false);
    results = tensors_in(call(*one.op, map_tensors(one.args(), duplicate)));
  }
  for (const Target& target : kTargets) {
    // Whether a type can hold random numbers is asked as they are drawn, of functional forms too.
    if (one.op->has(Traits::kRandom) && target.other_type) continue;
    auto fresh = [&] {
      OutTensors targets;
      for (const Tensor& result : results) targets.push_back(target.make(result));
      return OutCase{*one.op, out, map_tensors(one.args(), duplicate), targets};
    };
    const Answer expected = answer_of([&] { return eager(fresh()); });
    const bool values = has_values(*one.op);
    if (!one.op->has(Traits::kDataDependent))
      compare_answers("fake", target, answer_of([&] { return fake(fresh()); }), expected, false, texts);
    compare_answers("functionalize", target, answer_of([&] { return functional(fresh()); }), expected, values,
                    texts);
    compare_answers("captured", target, answer_of([&] { return captured(fresh()); }), expected, values,
                    texts);
  }
}

TEST(OutForms, AnswerAlikeInEveryLayer) {
  expect_only(check_samples([](const Operator& op) { return out_form(op) != nullptr; }, check_targets), {});
}

}  // namespace
}  // namespace weft::table
