// Ports of TraceApi: what traced modules are, what they keep, and what they are called.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/base/allocator.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::args;
using testing::close;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::warnings_of;

// In code that was compiled from source is_tracing() is the constant false. There is no such code yet.
TEST(TraceApiParts, is_tracing_without_script) {
  std::vector<bool> seen;
  auto f = [&](const Tensor& x) {
    seen.push_back(is_tracing());
    return x * 2;
  };
  EXPECT_FALSE(is_tracing());
  f(ones({2}));
  EXPECT_THAT(seen, ElementsAre(false));
  seen.clear();
  TracedFunction traced = trace(f, ones({2}));
  EXPECT_THAT(seen, ElementsAre(true, true, false));  // the trace, its repetition, the run without a trace
  EXPECT_FALSE(is_tracing());
  seen.clear();
  traced(ones({2}));
  EXPECT_THAT(seen, IsEmpty());
  EXPECT_ERROR(
      trace([](const Tensor&) -> Tensor { fail("trouble while tracing: {}", is_tracing()); }, ones({2})),
      "trouble while tracing: true");
  EXPECT_FALSE(is_tracing());
}

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  nn::Linear last = child("last", nn::Linear(3, 3));
  Tensor offset = buffer("offset", ones({3}));
  Tensor unsaved = buffer("unsaved", full({3}, 0.5), false);
  Tensor forward(const Tensor& x) { return last(fc(x)) + offset * unsaved; }
  WEFT_ARGS(x)
};

std::vector<std::string> names_of(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

// --- state -----------------------------------------------------------------------------------------------

TEST(TraceApi, test_api_traced_module_attribute_forwarding) {
  Net net;
  Tensor x = randn({2, 4});
  TracedModule traced = trace(net, x);
  TracedModule handle = traced;
  // Reading.
  EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_same(net.fc.weight));
  EXPECT_ERROR(traced.find("fc.height"), "there is no 'height' in 'Linear'");
  EXPECT_FALSE(traced.has("fc.height"));
  EXPECT_FALSE(traced.has("height.weight"));
  // Assigning: the next run has the new tensor, and every handle sees it. The module that was traced does
  // not.
  Tensor weight = randn({3, 4}).set_requires_grad();
  traced.set_attribute("fc.weight", weight);
  for (const TracedModule& one : {traced, handle}) {
    EXPECT_TRUE(one.find("fc.weight").to_tensor().is_same(weight));
    EXPECT_TRUE(one.named_parameters()[0].second.is_same(weight));
    EXPECT_TRUE(close(one(x), net.last(linear(x, weight, net.fc.bias)) + 0.5, 1e-6, 1e-6));
  }
  EXPECT_FALSE(net.find("fc.weight").to_tensor().is_same(weight));
  traced.set_attribute("offset", zeros({3}));
  EXPECT_TRUE(close(traced(x), net.last(linear(x, weight, net.fc.bias)), 1e-6, 1e-6));
  EXPECT_THAT(names_of(traced.state_dict()),
              ElementsAre("offset", "fc.weight", "fc.bias", "last.weight", "last.bias"));
  EXPECT_ERROR(traced.set_attribute("fc.height", weight), "there is no 'height'");
  EXPECT_ERROR(traced.set_attribute("fc.weight", Value()), "can be replaced, but not removed");
  EXPECT_ERROR(traced.set_attribute("fc.weight", Tensor()), "can be replaced, but not removed");
  EXPECT_ERROR(traced.set_attribute("fc.weight", 3),
               "'fc.weight' is a tensor, which an integer cannot replace");
  // Deleting.
  EXPECT_ERROR(traced.delete_attribute("fc.weight"),
               "cannot delete methods or parameters of a script module");
  EXPECT_ERROR(traced.delete_attribute("forward"), "cannot delete methods or parameters of a script module");
  EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_same(weight));

  // What any module can do.
  EXPECT_THAT(names_of(traced.named_parameters()),
              ElementsAre("fc.weight", "fc.bias", "last.weight", "last.bias"));
  EXPECT_THAT(names_of(traced.named_buffers()), ElementsAre("offset", "unsaved"));
  Net other;
  traced.load_state_dict(other.state_dict());
  EXPECT_TRUE(close(traced(x), other(x), 1e-6, 1e-6));
  expect_equal(weight, other.fc.weight);  // values are copied into what is there
  traced.eval();
  EXPECT_FALSE(traced.is_training());
  EXPECT_FALSE(traced.state()->children[0].state->training);
  traced.train();
  EXPECT_TRUE(traced.state()->children[0].state->training);
  traced.to(kFloat64);
  EXPECT_EQ(traced.find("fc.weight").to_tensor().dtype(), kFloat64);
  EXPECT_EQ(traced.find("unsaved").to_tensor().dtype(), kFloat64);
  Tensor in_double = traced(x.to(kFloat64));
  EXPECT_EQ(in_double.dtype(), kFloat64);
  EXPECT_TRUE(close(in_double, other(x).to(kFloat64), 1e-5, 1e-5));
  const Device sim(DeviceType::kSim);
  traced.to(kFloat32);
  traced.to(sim);
  for (const auto& [name, tensor] : traced.named_buffers()) EXPECT_EQ(tensor.device(), sim) << name;
  Tensor there = traced(to(x, std::nullopt, std::nullopt, sim));
  EXPECT_EQ(there.device(), sim);
  EXPECT_TRUE(close(testing::on_cpu(there), other(x), 1e-5, 1e-5));
  traced.to(kCpu);
  EXPECT_TRUE(close(traced(x), other(x), 1e-5, 1e-5));
}

struct Outer : nn::Module {
  Net net = child("net", Net());
  nn::Dropout drop = child("drop", nn::Dropout(0.0));
  Tensor forward(const Tensor& x) { return drop(net(x)); }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_traced_module_repr) {
  TracedModule traced = trace(Outer(), randn({2, 4}), {.compilation_unit = CompilationUnit()});
  EXPECT_EQ(traced.to_string(), R"(Outer(
  original_name=Outer
  (net): Net(
    original_name=Net
    (fc): Linear(original_name=Linear)
    (last): Linear(original_name=Linear)
  )
  (drop): Dropout(original_name=Dropout)
))");
  EXPECT_EQ(traced.original_name(), "Outer");
  TracedModule leaf = trace(nn::Linear(4, 3), randn({2, 4}), {.compilation_unit = CompilationUnit()});
  EXPECT_EQ(leaf.to_string(), "Linear(original_name=Linear)");
  // The type is that of the module that was traced, not of what a trace makes of it.
  EXPECT_THAT(traced.graph_text(), StartsWith("graph(%self"));
  EXPECT_THAT(traced.graph_text(), HasSubstr(" : __torch__.Outer,\n"));
  EXPECT_THAT(traced.graph_text(), HasSubstr("%net : __torch__.Net = prim::GetAttr[name=\"net\"](%self"));
  EXPECT_THAT(traced.graph_text(), Not(HasSubstr("Traced")));
  EXPECT_EQ(leaf.graph_text(), R"(graph(%self : __torch__.Linear,
      %input : Float(2, 4, strides=[4, 1], requires_grad=0, device=cpu)):
  %bias : Tensor = prim::GetAttr[name="bias"](%self)
  %weight : Tensor = prim::GetAttr[name="weight"](%self)
  %4 : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::linear(%input, %weight, %bias)
  return (%4)
)");
  EXPECT_EQ(leaf.code(), R"(def forward(self,
    input: Tensor) -> Tensor:
  bias = self.bias
  weight = self.weight
  return torch.linear(input, weight, bias)
)");
}

TEST(TraceApi, test_api_traced_module_backward_hook_child_error) {
  auto hook = [](std::vector<Tensor>&, const std::vector<Tensor>&) {};
  const std::string words = "Modules that have backward hooks assigned can't be compiled: ";
  Outer outer;
  uint64_t grandchild = outer.net.last.register_backward_hook(hook);
  EXPECT_ERROR(trace(outer, randn({2, 4})), words + "Linear()");
  EXPECT_ERROR(trace(outer.net, randn({2, 4})), words + "Linear()");
  outer.net.last.remove_hook(grandchild);
  uint64_t child = outer.net.register_backward_hook(hook);
  EXPECT_ERROR(trace(outer, randn({2, 4})), words + "Net(\n  (fc): Linear()\n  (last): Linear()\n)");
  EXPECT_ERROR(trace_module(outer, Dict{{"forward", randn({2, 4})}}), words + "Net(");
  outer.net.remove_hook(child);
  EXPECT_NO_THROW(trace(outer, randn({2, 4})));
}

// A graph module whose tensors are constants.
GraphModule frozen(const GraphModule& module) {
  GraphModule copy = module.deep_copy();
  for (const auto& [name, tensor] : copy.named_parameters()) copy.set_attribute(name, tensor.detach());
  return copy;
}

TEST(TraceApi, test_api_top_level_traced_module_reconstruct) {
  Net net;
  Tensor x = randn({2, 4});
  TracedModule traced = trace(net, x);
  const TracedModule handle = traced;
  const Tensor wanted = net(x).detach();
  const GraphModule& low_level = traced.forward_method().graph_module();
  GraphModule copied = low_level.deep_copy();
  GraphModule loaded = testing::saved_and_loaded(low_level);
  // What calls run is looked up once: methods that come later change nothing.
  const TracedFunction* forward = &traced.forward_method();
  EXPECT_EQ(&traced.method("forward"), forward);
  for (int i = 0; i < 100; ++i)
    traced.add_method(TracedFunction("forward", "other", GraphModule(), forward->original()));
  EXPECT_EQ(&traced.forward_method(), forward);
  EXPECT_EQ(&handle.forward_method(), forward);
  expect_equal(traced(x), wanted);

  for (const GraphModule& other : {copied, loaded, frozen(low_level)}) {
    traced.reconstruct(other);
    EXPECT_THAT(handle.method_names(), ElementsAre("forward"));
    expect_equal(traced(x), wanted);
    expect_equal(handle(x), wanted);
    EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_same(other.find("fc.weight").to_tensor()));
    EXPECT_FALSE(traced.find("fc.weight").to_tensor().is_same(net.fc.weight));
    EXPECT_EQ(traced.original_name(), "Net");
    // Its graph is its own, and its tensors are those of the other.
    Tensor now = randn({3});
    traced.set_attribute("last.bias", now);
    EXPECT_FALSE(close(traced(x), wanted));
    expect_equal(other(x), wanted);
    {
      NoGrad no_grad;
      other.find("fc.weight").to_tensor().zero_();
    }
    EXPECT_TRUE(close(traced(x), linear(net.fc.bias, net.last.weight, now).expand({2, 3}) + 0.5, 1e-6, 1e-6));
  }
  EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_leaf());
  EXPECT_FALSE(traced.find("fc.weight").to_tensor().requires_grad());
  // Another program altogether.
  GraphModule twice = trace([](const Tensor& t) { return t * 2; }, x).graph_module();
  traced.reconstruct(twice);
  expect_equal(traced(x), x * 2);
  expect_equal(handle(x), x * 2);
  EXPECT_FALSE(traced.has("fc"));
  EXPECT_THAT(traced.state_dict(), IsEmpty());
  EXPECT_EQ(traced.to_string(), "Net(original_name=Net)");
}

// --- classes and names -----------------------------------------------------------------------------------

// Like PyTorch's TracedModule, which can be a part of something but not be called by itself.
struct Uncalled : TracedModule {
  using TracedModule::TracedModule;
  Tensor operator()(const Tensor&) const { fail("Trace submodules cannot be called."); }
};

struct HoldsTraced : nn::Module {
  TracedModule inner;
  nn::Linear fc = child("fc", nn::Linear(3, 3));
  explicit HoldsTraced(const TracedModule& traced) : inner(child("inner", traced)) {}
  Tensor forward(const Tensor& x) { return fc(inner(x)); }
  WEFT_ARGS(x)
};

// PyTorch also compiles a module that has exported methods from their source, which there is none of yet.
TEST(TraceApiParts, trace_module_class_option_without_exports) {
  Net net;
  Tensor x = randn({2, 4});
  static_assert(std::is_same_v<decltype(trace(net, x)), TracedModule>);
  static_assert(std::is_same_v<decltype(trace<Uncalled>(net, x)), Uncalled>);
  static_assert(std::is_same_v<decltype(trace_module<Uncalled>(net, Dict())), Uncalled>);
  for (const Uncalled& traced :
       {trace<Uncalled>(net, x), trace<Uncalled>(method(net, &Net::forward, "forward"), x),
        trace_module<Uncalled>(net, Dict{{"forward", x}}),
        trace_module<Uncalled>(net, {method(net, &Net::forward, "forward")}, Dict{{"forward", x}})}) {
    EXPECT_ERROR(traced(x), "Trace submodules cannot be called.");
    expect_equal(traced.method("forward")(x), net(x));
    EXPECT_EQ(names_of(traced.state_dict()), names_of(net.state_dict()));
    EXPECT_EQ(traced.original_name(), "Net");
  }
  // One that is traced already stays what it is, by itself and as a child.
  Uncalled traced = trace<Uncalled>(net, x);
  std::optional<Uncalled> again;
  EXPECT_THAT(warnings_of([&] { again = trace(traced, x); }),
              ElementsAre(HasSubstr("is already a ScriptModule")));
  EXPECT_EQ(again->state(), traced.state());
  TracedModule inner = trace(net, x, {.compilation_unit = CompilationUnit()});
  HoldsTraced holder(inner);
  TracedModule outer = trace(holder, x, {.compilation_unit = CompilationUnit()});
  expect_equal(outer(x), holder(x));
  EXPECT_EQ(outer.state()->children[0].state, inner.state());
  expect_equal(callable_in(outer.find("inner"))->call(ValueList{x}).to_tensor(), net(x));
  EXPECT_ERROR(callable_in(outer.find("fc"))->call(ValueList{x}), "Trace submodules cannot be called.");
  EXPECT_ERROR(callable_in(outer.find("inner.fc"))->call(ValueList{x}), "Trace submodules cannot be called.");
}

TEST(TraceApi, test_api_trace_compilation_unit_option) {
  Net net;
  Tensor x = randn({2, 4});
  const CompilationUnit unit, other;
  std::vector<std::string> process_types = CompilationUnit::process_wide().type_names();
  std::vector<std::string> process_functions = CompilationUnit::process_wide().function_names();
  TracedModule first = trace(net, x, {.compilation_unit = unit});
  // Children first. Instances of one class are types of their own, and the check has left none behind.
  EXPECT_THAT(unit.type_names(),
              ElementsAre("__torch__.Linear", "__torch__.___torch_mangle_0.Linear", "__torch__.Net"));
  TracedModule second = trace(net, x, {.compilation_unit = unit});
  EXPECT_THAT(unit.type_names(),
              ElementsAre("__torch__.Linear", "__torch__.___torch_mangle_0.Linear", "__torch__.Net",
                          "__torch__.___torch_mangle_1.Linear", "__torch__.___torch_mangle_2.Linear",
                          "__torch__.___torch_mangle_3.Net"));
  EXPECT_EQ(first.method("forward").qualified_name(), "__torch__.Net.forward");
  EXPECT_EQ(second.method("forward").qualified_name(), "__torch__.___torch_mangle_3.Net.forward");
  for (const char* line : {" : __torch__.Net,\n", "%fc : __torch__.Linear = prim::GetAttr[name=\"fc\"]",
                           "%last : __torch__.___torch_mangle_0.Linear = prim::GetAttr[name=\"last\"]"})
    EXPECT_THAT(first.graph_text(), HasSubstr(line));
  for (const char* line : {" : __torch__.___torch_mangle_3.Net,\n",
                           "%fc : __torch__.___torch_mangle_1.Linear = prim::GetAttr[name=\"fc\"]",
                           "%last : __torch__.___torch_mangle_2.Linear = prim::GetAttr[name=\"last\"]"}) {
    EXPECT_THAT(second.graph_text(), HasSubstr(line));
    EXPECT_THAT(second.graph_text({.inline_calls = true}), HasSubstr(line));
  }
  EXPECT_EQ(second.to_string(), first.to_string());
  EXPECT_EQ(second.code(), first.code());
  // Functions share the names and numbers.
  auto f = [](const Tensor& t) { return t * 2; };
  auto traced = [&](const CompilationUnit& in, const char* name) {
    TraceOptions options;
    options.compilation_unit = in;
    options.name = name;
    return trace(f, x, options);
  };
  EXPECT_EQ(traced(unit, "f").qualified_name(), "__torch__.f");
  EXPECT_EQ(traced(unit, "f").qualified_name(), "__torch__.___torch_mangle_4.f");
  EXPECT_EQ(traced(unit, "Net").qualified_name(), "__torch__.___torch_mangle_5.Net");
  EXPECT_EQ(traced(other, "f").qualified_name(), "__torch__.f");
  EXPECT_THAT(unit.function_names(),
              ElementsAre("__torch__.f", "__torch__.___torch_mangle_4.f", "__torch__.___torch_mangle_5.Net"));
  EXPECT_THAT(other.type_names(), IsEmpty());
  EXPECT_EQ(traced(unit, "f").name(), "f");
  EXPECT_THAT(traced(unit, "f").code(), StartsWith("def f("));

  // Nothing of this was the process's; by default it is.
  EXPECT_EQ(CompilationUnit::process_wide().type_names(), process_types);
  EXPECT_EQ(CompilationUnit::process_wide().function_names(), process_functions);
  TracedModule by_default = trace(net, x);
  trace(f, x);
  EXPECT_EQ(CompilationUnit::process_wide().type_names().size(), process_types.size() + 3);
  EXPECT_EQ(CompilationUnit::process_wide().type_names().back(), by_default.state()->qualified_class);
  EXPECT_EQ(CompilationUnit::process_wide().function_names().size(), process_functions.size() + 1);

  // Names are no difference: a module that holds a traced one is checked against a trace of its own.
  HoldsTraced holder(second);
  EXPECT_THAT(warnings_of([&] { trace(holder, x, {.compilation_unit = unit}); }), IsEmpty());
}

// --- example inputs --------------------------------------------------------------------------------------

struct TwoMethods : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return fc(x); }
  Tensor weighted(const Tensor& weight, const std::pair<Tensor, Tensor>& pair) {
    return fc.weight * weight + pair.first * pair.second;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_store_inputs) {
  TwoMethods net;
  auto trace_both = [&](const Value& x, const Value& weighted, bool store) {
    return trace_module(net,
                        {method(net, &TwoMethods::forward, "forward"),
                         method(net, &TwoMethods::weighted, "weighted", "weight, pair")},
                        Dict{{"forward", x}, {"weighted", weighted}}, {.store_inputs = store});
  };
  Tensor x = randn({2, 4}), w = randn({4, 4}).t().set_requires_grad(), a = randn({4}), b = randn({4, 1});
  TracedModule traced = trace_both(x, args({w, args({a, b})}), true);
  EXPECT_TRUE(traced.method("forward").example_inputs()->elements()[0].to_tensor().is_same(x));
  Value kept = *traced.method("weighted").example_inputs();
  EXPECT_TRUE(kept.elements()[0].to_tensor().is_same(w));
  EXPECT_TRUE(kept.elements()[1].elements()[1].to_tensor().is_same(b));
  auto f = [](const Tensor& t, const Tensor& u) { return t * 2 - u; };
  TracedFunction by_name =
      trace(f, {}, {.example_kwarg_inputs = {{"u", a}, {"t", a + 1}}, .arg_names = "t, u"});
  EXPECT_TRUE(by_name.example_inputs()->to_dict().at("u").to_tensor().is_same(a));

  TracedModule without = trace_both(x, args({w, args({a, b})}), false);
  EXPECT_FALSE(without.method("forward").example_inputs());
  EXPECT_FALSE(without.method("weighted").example_inputs());
  EXPECT_THAT(without.method("forward").graph_module().traced_inputs(), ::testing::SizeIs(0));
  EXPECT_THAT(graph_module_bytes(without.method("forward").graph_module()), Not(HasSubstr("traced_inputs")));
  // The check runs on copies, and its traces keep none of them.
  {
    const size_t large = size_t{1} << 20;
    Tensor big = zeros({static_cast<int64_t>(large / 4)});
    TracedFunction warm = trace([](const Tensor& t) { return t.sum(); }, big);
    const size_t in_use = allocator_stats().bytes_in_use;
    TracedFunction checked = trace([](const Tensor& t) { return t.sum(); }, big);
    EXPECT_TRUE(checked.example_inputs());
    EXPECT_LT(allocator_stats().bytes_in_use, in_use + large);
  }

  // A file has what they were, and none of their data.
  Tensor large = full({64, 64}, 0.1234567);
  GraphModule doubled = trace([](const Tensor& t) { return t * 2; }, large).graph_module();
  std::string bytes = graph_module_bytes(doubled);
  EXPECT_THAT(bytes, HasSubstr("traced_inputs"));
  EXPECT_LT(bytes.size(), 4096u);
  GraphModule loaded = testing::saved_and_loaded(traced.method("weighted").graph_module());
  Value back = loaded.traced_inputs().at("weighted");
  EXPECT_EQ(ScriptType::of(back), ScriptType::of(kept));
  for (const Value& leaf : tree_leaves(back)) EXPECT_FALSE(leaf.tensor_ref().storage()->has_memory());
  EXPECT_TRUE(back.elements()[0].to_tensor().requires_grad());
  expect_equal(loaded.call({w, args({a, b})}).to_tensor(),
               traced.method("weighted").call({w, args({a, b})}).to_tensor());

  // Loading puts their types on the inputs of the graph where that is asked for.
  std::string saved = graph_module_bytes(traced.method("forward").graph_module());
  EXPECT_THAT(script_text(parse_graph_module(saved)), StartsWith("graph(%x : Tensor):\n"));
  GraphModule restored = parse_graph_module(saved, "saved", {.restore_shapes = true});
  EXPECT_THAT(script_text(restored),
              StartsWith("graph(%x : Float(2, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"));
  EXPECT_EQ(graph_module_bytes(restored), saved);
  expect_equal(restored(x), net.fc(x));
  EXPECT_THAT(script_text(parse_graph_module(graph_module_bytes(traced.method("weighted").graph_module()),
                                             "saved", {.restore_shapes = true})),
              StartsWith("graph(%weight : Float(4, 4, strides=[1, 4], requires_grad=1, device=cpu),\n"
                         "      %pair : (Float(4, strides=[1], requires_grad=0, device=cpu), Float(4, 1, "
                         "strides=[1, 1], requires_grad=0, device=cpu))):\n"));
  EXPECT_THAT(script_text(parse_graph_module(graph_module_bytes(by_name.graph_module()), "saved",
                                             {.restore_shapes = true})),
              StartsWith("graph(%t : Float(4, strides=[1], requires_grad=0, device=cpu),\n"
                         "      %u : Float(4, strides=[1], requires_grad=0, device=cpu)):\n"));
}

}  // namespace
}  // namespace weft
