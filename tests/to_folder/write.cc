// Writes modules into a folder, with inputs and the results that their classes must give: to_folder's half of
// the test that compiles what it writes.
#include <cstdio>

#include <weft/extend.h>

namespace weft {
namespace {

struct Test : nn::Module {
  Tensor W = parameter("W", randn({2}));
  nn::Sequential seq = child("seq", nn::Sequential(nn::BatchNorm1d(2, {.eps = 2})));
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  Tensor attr = randn({2});
  Tensor attr2 = buffer("attr2", randn({2}));
  Tensor attr3 = buffer("attr3", ones({2}, kInt32));
  Tensor forward(const Tensor& x) { return linear(seq(W + attr + attr2 + attr3 + x)); }
  WEFT_ARGS(x)
};

// Control flow, sizes, lists, tuples, and a name that C++ has taken.
Value mixed(Args args) {
  Tensor x = args[0].to_tensor(), y = args[1].to_tensor();
  Tensor chosen = func::cond(
      x.sum() > 0, [y](const Tensor& t) { return t.cos() * y; },
      [](const Tensor& t) { return t.sin() * 2.5; }, x);
  Tensor mapped = func::map([](const Tensor& row, const Tensor& own) { return row.exp() + own; }, chosen, y);
  std::vector<Tensor> parts = split(mapped, 2, 0);
  auto [values, indices] = max(parts[0], 1);
  auto step = make_callable(
      [](const Tensor& carry, const Tensor& row) { return std::tuple(carry + row, carry * row); });
  Value scanned = func::scan(step, zeros({x.size(1)}), mapped);
  Tensor shifted = zeros({x.size(1)}) + x.size(0);  // a size for a tensor
  return Value::tuple(
      {values, indices, scanned, mapped.reshape({x.size(0) * x.size(1)}).to(kFloat64), shifted});
}

// --- every operator --------------------------------------------------------------------------------------

bool is_complex_tensor(const Value& value) {
  if (value.is_sequence()) {
    for (const Value& element : value.elements())
      if (is_complex_tensor(element)) return true;
    return false;
  }
  return value.is_tensor() && is_complex(value.tensor_ref().dtype());
}

// Of one sample each: the call in the graph, its tensors as attributes, its results among the outputs.
class EveryOperator {
 public:
  GraphModule module() {
    for (const Operator* op : all_operators())
      if (is_fit(*op)) add(*op);
    std::printf("%zu operators\n", calls_);
    graph_.output(Value::list(outputs_));
    return GraphModule(attributes_, std::move(graph_), "Every");
  }

 private:
  // Attributes are pages of a file, which nobody can resize.
  static bool gives_other_memory(const Operator& op) {
    return op.has(Traits::kGeometry) && op.has(Traits::kEffectful);
  }
  static bool is_fit(const Operator& op) {
    return op.form() == OpForm::kFunctional && op.def().samples && op.signature() &&
           !op.has(Traits::kRandom) && !op.has(Traits::kUninitialized) && !gives_other_memory(op);
  }
  Value as_node(const Value& value) {
    if (value.is_sequence()) {
      ValueList elements;
      for (const Value& element : value.elements()) elements.push_back(as_node(element));
      return Value::list(std::move(elements));
    }
    if (!value.is_tensor()) return value;
    attributes_.emplace_back("t" + std::to_string(attributes_.size()), value);
    return value_of(graph_.get_attr(attributes_.back().first));
  }
  void add(const Operator& op) {
    ValueList args = op.def().samples().at(0).args;
    for (const Value& arg : args)
      if (is_complex_tensor(arg) || arg.kind() == Value::Kind::kGenerator) return;
    // On copies: some write to what they are given.
    ValueList own;
    for (const Value& arg : args) own.push_back(arg.is_tensor() ? Value(arg.to_tensor().clone()) : arg);
    Value result = call(op, own);
    if (is_complex_tensor(result)) return;
    ValueList nodes;
    Kwargs by_name;
    for (size_t i = 0; i < args.size(); ++i) {
      const Argument& argument = op.schema().arguments[i];
      if (argument.kwarg_only) by_name.emplace_back(argument.name, as_node(args[i]));
      else nodes.push_back(as_node(args[i]));
    }
    Node& node = graph_.call(op, nodes, by_name);
    ++calls_;
    if (result.is_tensor()) outputs_.push_back(value_of(node));
    if (!result.is_sequence()) return;
    for (size_t i = 0; i < result.elements().size(); ++i)
      if (result.elements()[i].is_tensor())
        outputs_.push_back(
            value_of(graph_.call_function("operator.getitem", {value_of(node), static_cast<int64_t>(i)})));
  }

  Graph graph_;
  GraphModule::Attributes attributes_;
  ValueList outputs_;
  size_t calls_ = 0;
};

// --- files -----------------------------------------------------------------------------------------------

void collect(const Value& value, SafeTensors& file) {
  for (const Value& leaf : tree_flatten(value).leaves)
    if (leaf.is_tensor()) file.add(std::to_string(file.size()), leaf.to_tensor().detach());
}

// The results come from what load_folder reads back.
void write(const GraphModule& module, const std::string& folder, const std::string& name,
           const ValueList& inputs) {
  to_folder(module, folder, name);
  SafeTensors given, expected;
  collect(Value::list(inputs), given);
  collect(load_folder(folder, name).call(inputs), expected);
  save_safetensors(given, folder + "/" + name + "_inputs.safetensors");
  save_safetensors(expected, folder + "/" + name + "_expected.safetensors");
}

void write_all(const std::string& folder) {
  manual_seed(3);
  write(symbolic_trace(Test()), folder, "Foo", {randn({2, 2})});
  ValueList inputs{randn({4, 3}), randn({3})};
  write(make_graph(ValueFunction(mixed), {.arg_names = "x, double"})(inputs[0], inputs[1]), folder, "Mixed",
        inputs);
  write(make_graph(ValueFunction(mixed), {.mode = CaptureMode::kSymbolic, .arg_names = "class, y"})(
            inputs[0], inputs[1]),
        folder, "Symbolic", {randn({6, 5}), randn({5})});
  write(EveryOperator().module(), folder, "Every", {});
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  weft::write_all(argv[1]);
  return 0;
}
