// Captures programs of steps (graph_programs.py) and writes the code of their graphs as a JSON list.
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include <weft/extend.h>
#include <weft/weft.h>

#include "base/json.h"

namespace weft {
namespace {

using Tensors = std::vector<Tensor>;

// One step with the tensors and parameters that it is given.
struct Step {
  const Tensors& in;
  const Json& p;

  const Tensor& t(size_t i = 0) const { return in[i]; }
  int64_t i(size_t at) const { return p.at(at).as_int(); }
  // A number of the kind that is written: `2` is an integer, `2.0` is not.
  Scalar number(size_t at) const {
    return p.at(at).is_int() ? Scalar(p.at(at).as_int()) : Scalar(p.at(at).as_double());
  }
  bool flag(size_t at) const { return p.at(at).as_bool(); }
  std::vector<SymInt> sizes(size_t at) const {
    std::vector<SymInt> sizes;
    for (const Json& size : p.at(at).as_array()) sizes.emplace_back(size.as_int());
    return sizes;
  }
};
using Run = std::function<Tensors(const Step&)>;
using Table = std::map<std::string, Run>;

template <typename F>
Run one(F f) {
  return [f](const Step& s) { return Tensors{f(s)}; };
}
// In-place steps work on a copy.
template <typename F>
Run written(F f) {
  return [f](const Step& s) {
    Tensor y = s.t().clone();
    f(y, s);
    return Tensors{y};
  };
}

void add_pointwise(Table& table) {
#define WEFT_STEP(name) table[#name] = one([](const Step& s) { return weft::name(s.t()); });
  WEFT_STEP(sin)
  WEFT_STEP(cos)
  WEFT_STEP(exp)
  WEFT_STEP(tanh)
  WEFT_STEP(sigmoid)
  WEFT_STEP(relu)
  WEFT_STEP(neg)
  WEFT_STEP(abs)
  WEFT_STEP(reciprocal)
  WEFT_STEP(square)
  WEFT_STEP(erf)
  WEFT_STEP(floor)
  WEFT_STEP(ceil)
  WEFT_STEP(sign)
  WEFT_STEP(sqrt)
  WEFT_STEP(rsqrt)
  WEFT_STEP(log)
  WEFT_STEP(log1p)
  WEFT_STEP(expm1)
  WEFT_STEP(gelu)
  WEFT_STEP(silu)
  WEFT_STEP(softplus)
  WEFT_STEP(leaky_relu)
#undef WEFT_STEP
#define WEFT_STEP(name) table[#name] = one([](const Step& s) { return weft::name(s.t(), s.t(1)); });
  WEFT_STEP(lt)
  WEFT_STEP(le)
  WEFT_STEP(gt)
  WEFT_STEP(ge)
  WEFT_STEP(eq)
  WEFT_STEP(ne)
  WEFT_STEP(add)
  WEFT_STEP(sub)
  WEFT_STEP(mul)
  WEFT_STEP(div)
  WEFT_STEP(maximum)
  WEFT_STEP(minimum)
#undef WEFT_STEP
}

void add_numbers(Table& table) {
  // What Python gives though it is the default.
  table["elu"] = one([](const Step& s) { return elu(s.t(), 1.0); });
  table["hardtanh"] = one([](const Step& s) { return hardtanh(s.t(), -1.0, 1.0); });
  table["pow"] = one([](const Step& s) { return s.t().abs().pow(s.t(1)); });
  table["add_number"] = one([](const Step& s) { return s.t() + s.number(0); });
  table["number_add"] = one([](const Step& s) { return s.number(0) + s.t(); });
  table["sub_number"] = one([](const Step& s) { return s.t() - s.number(0); });
  table["number_sub"] = one([](const Step& s) { return s.number(0) - s.t(); });
  table["mul_number"] = one([](const Step& s) { return s.t() * s.number(0); });
  table["div_number"] = one([](const Step& s) { return s.t() / s.number(0); });
  table["number_div"] = one([](const Step& s) { return s.number(0) / s.t(); });
  table["pow_number"] = one([](const Step& s) { return s.t().pow(s.number(0)); });
  table["floordiv_number"] = one([](const Step& s) { return s.t().floor_divide(s.number(0)); });
  table["floordiv"] = one([](const Step& s) { return s.t().floor_divide(s.t(1)); });
  table["remainder_number"] = one([](const Step& s) { return s.t() % s.number(0); });
  table["div_mode"] =
      one([](const Step& s) { return div(s.t(), s.t(1), std::string_view(s.p.at(0).as_string())); });
  table["div_number_mode"] =
      one([](const Step& s) { return div(s.t(), s.number(1), std::string_view(s.p.at(0).as_string())); });
  table["gt_number"] = one([](const Step& s) { return s.t() > s.number(0); });
  table["clamp"] = one([](const Step& s) { return s.t().clamp(s.number(0), s.number(1)); });
  table["clamp_min"] = one([](const Step& s) { return s.t().clamp_min(s.number(0)); });
  table["where"] = one([](const Step& s) { return where(s.t() > 0, s.t(), s.t(1)); });
  table["where_number"] = one([](const Step& s) { return where(s.t() > s.number(0), s.t(), s.number(1)); });
  table["masked_fill"] =
      one([](const Step& s) { return s.t().masked_fill(s.t() < s.number(0), s.number(1)); });
  table["scale_by_size"] = one([](const Step& s) { return s.t() * s.t().size(0); });
  table["divide_by_size"] = one([](const Step& s) { return s.t().sum() / s.t().size(-1); });
}

void add_reductions(Table& table) {
  table["sum"] = one([](const Step& s) { return s.t().sum(); });
  table["sum_dim"] = one([](const Step& s) { return s.t().sum({s.i(0)}, s.flag(1)); });
  table["mean"] = one([](const Step& s) { return s.t().mean(); });
  table["mean_dim"] = one([](const Step& s) { return s.t().mean({s.i(0)}, s.flag(1)); });
  table["amax"] = one([](const Step& s) { return s.t().amax({s.i(0)}, s.flag(1)); });
  table["max_dim"] = one([](const Step& s) { return std::get<0>(s.t().max(s.i(0))); });
  table["max_both"] = [](const Step& s) {
    auto [values, indices] = s.t().max(s.i(0));
    return Tensors{values, indices};
  };
  table["var"] = one([](const Step& s) { return s.t().var({{s.i(0)}}); });
  table["std"] = one([](const Step& s) { return std(s.t(), std::nullopt, std::optional<Scalar>()); });
  table["cumsum"] = one([](const Step& s) { return s.t().cumsum(s.i(0)); });
  table["softmax"] = one([](const Step& s) { return s.t().softmax(s.i(0)); });
  table["log_softmax"] = one([](const Step& s) { return s.t().log_softmax(s.i(0)); });
  table["argmax"] = one([](const Step& s) { return s.t().argmax(s.i(0)); });
  table["norm"] = one([](const Step& s) { return linalg_vector_norm(s.t()); });
  table["layer_norm"] = one([](const Step& s) { return layer_norm(s.t(), {s.t().size(-1)}); });
  table["mse_loss"] = one([](const Step& s) { return mse_loss(s.t(), s.t(1)); });
}

void add_views(Table& table) {
  table["flatten"] = one([](const Step& s) { return s.t().flatten(); });
  table["reshape_flat"] = one([](const Step& s) { return s.t().reshape({-1}); });
  table["view_flat"] = one([](const Step& s) { return s.t().view({-1}); });
  table["view_sizes"] = one([](const Step& s) { return s.t().view({s.t().size(0), -1}); });
  table["reshape_column"] = one([](const Step& s) { return s.t().reshape({-1, 1}); });
  table["transpose"] = one([](const Step& s) { return s.t().transpose(s.i(0), s.i(1)); });
  table["t"] = one([](const Step& s) { return s.t().t(); });
  table["movedim"] = one([](const Step& s) { return s.t().movedim(s.i(0), s.i(1)); });
  table["unsqueeze"] = one([](const Step& s) { return s.t().unsqueeze(s.i(0)); });
  table["squeeze"] = one([](const Step& s) { return s.t().squeeze(); });
  table["squeeze_dim"] = one([](const Step& s) { return s.t().squeeze(s.i(0)); });
  table["expand"] = one([](const Step& s) {
    std::vector<SymInt> sizes(static_cast<size_t>(s.t().dim()) + 1, -1);
    sizes[0] = s.i(0);
    return s.t().unsqueeze(0).expand(sizes);
  });
  table["expand_as"] = one([](const Step& s) { return s.t().expand_as(s.t(1)); });
  table["select"] = one([](const Step& s) { return s.t().select(s.i(0), s.i(1)); });
  table["narrow"] = one([](const Step& s) { return s.t().narrow(s.i(0), s.i(1), 1); });
  table["item"] = one([](const Step& s) { return at(s.t(), s.i(0)); });
  table["column"] = one([](const Step& s) { return at(s.t(), {Slice(), s.i(0)}); });
  table["last"] = one([](const Step& s) { return at(s.t(), {kEllipsis, s.i(0)}); });
  table["slice"] = one([](const Step& s) { return at(s.t(), {{s.i(0), s.i(1)}}); });
  table["slice_column"] = one([](const Step& s) { return at(s.t(), {Slice(), Slice(s.i(0), s.i(1))}); });
  table["slice_all"] = one([](const Step& s) { return at(s.t(), Slice()); });
  table["slice_from"] = one([](const Step& s) { return at(s.t(), Slice(s.i(0), std::nullopt)); });
  table["new_axis"] = one([](const Step& s) { return at(s.t(), {std::nullopt}); });
  table["index"] = one([](const Step& s) {
    Tensor first = s.t().dim() > 1 ? at(s.t(), {kEllipsis, 0}) : s.t();
    return at(s.t(), std::get<1>(sort(first, 0)));
  });
  table["chunk"] = [](const Step& s) { return s.t().chunk(2, s.i(0)); };
  table["split"] = [](const Step& s) { return s.t().split(s.i(1), s.i(0)); };
  table["unbind"] = [](const Step& s) { return s.t().unbind(s.i(0)); };
  table["diagonal"] = one([](const Step& s) { return s.t().diagonal(); });
  table["flip"] = one([](const Step& s) { return s.t().flip({s.i(0)}); });
  table["cat"] = one([](const Step& s) { return cat({s.t(), s.t(1)}, s.i(0)); });
  table["stack"] = one([](const Step& s) { return stack({s.t(), s.t(1)}, s.i(0)); });
}

void add_products(Table& table) {
  table["matmul"] = one([](const Step& s) { return matmul(s.t(), s.t(1)); });
  table["matmul_transposed"] = one([](const Step& s) { return matmul(s.t(), s.t(1).transpose(-1, -2)); });
  table["linear"] = one([](const Step& s) { return linear(s.t(), s.t(1)); });
  table["mv"] = one([](const Step& s) { return matmul(s.t(), at(s.t(1), 0)); });
  table["vm"] = one([](const Step& s) {
    Tensor row = at(s.t(), 0);
    return matmul(row, s.t(1).transpose(-1, -2));
  });
  table["dot"] = one([](const Step& s) {
    Tensor a = s.t().flatten(), b = s.t(1).flatten();
    return matmul(a, b);
  });
}

void add_factories(Table& table) {
  table["zeros_like"] = one([](const Step& s) { return zeros_like(s.t()); });
  table["ones_like"] = one([](const Step& s) { return ones_like(s.t()); });
  table["full_like"] = one([](const Step& s) { return full_like(s.t(), s.number(0)); });
  table["new_zeros"] = one([](const Step& s) { return s.t().new_zeros(s.sizes(0)); });
  table["new_ones"] = one([](const Step& s) { return s.t().new_ones(s.sizes(0)); });
  table["new_full"] = one([](const Step& s) { return s.t().new_full(s.sizes(0), s.number(1)); });
  table["zeros"] = one([](const Step& s) { return zeros(s.sizes(0)); });
  table["zeros_of_size"] = one([](const Step& s) { return zeros({s.t().size(0)}); });
  table["ones"] = one([](const Step& s) { return ones(s.sizes(0)); });
  table["full"] = one([](const Step& s) { return full(s.sizes(0), s.number(1)); });
  table["arange"] = one([](const Step& s) { return arange(s.number(0)); });
  table["type_as"] = one([](const Step& s) { return s.t().type_as(s.t(1)); });
  table["to_int"] = one([](const Step& s) { return s.t().to(kInt64); });
  table["to_double"] = one([](const Step& s) { return s.t().to(kFloat64); });
  table["clone"] = one([](const Step& s) { return s.t().clone(); });
  table["contiguous"] = one([](const Step& s) { return s.t().contiguous(); });
  table["detach"] = one([](const Step& s) { return s.t().detach(); });
}

void add_writes(Table& table) {
  table["put_number"] = written([](const Tensor& y, const Step& s) { put_at(y, s.i(0), s.number(1)); });
  table["put_column"] =
      written([](const Tensor& y, const Step& s) { put_at(y, {Slice(), s.i(0)}, s.number(1)); });
  table["put_slice"] =
      written([](const Tensor& y, const Step& s) { put_at(y, Slice(s.i(0), s.i(1)), s.number(2)); });
  table["put_all"] = written([](const Tensor& y, const Step& s) { put_at(y, Slice(), s.number(0)); });
  table["put_tensor"] = [](const Step& s) {
    Tensor value = at(s.t(1), s.i(0)), y = s.t().clone();
    put_at(y, s.i(0), value);
    return Tensors{y};
  };
  table["add_"] = written([](const Tensor& y, const Step& s) { y.add_(s.t(1)); });
  table["mul_"] = written([](const Tensor& y, const Step& s) { y.mul_(s.t(1)); });
  table["add_number_"] = written([](const Tensor& y, const Step& s) { y.add_(s.number(0)); });
  table["mul_number_"] = written([](const Tensor& y, const Step& s) { y.mul_(s.number(0)); });
  table["relu_"] = written([](const Tensor& y, const Step&) { y.relu_(); });
  table["zero_"] = written([](const Tensor& y, const Step&) { y.zero_(); });
  table["fill_"] = written([](const Tensor& y, const Step& s) { y.fill_(s.number(0)); });
  table["copy_"] = written([](const Tensor& y, const Step& s) { y.copy_(s.t(1)); });
}

const Table& steps() {
  static const Table table = [] {
    Table made;
    add_pointwise(made);
    add_numbers(made);
    add_reductions(made);
    add_views(made);
    add_products(made);
    add_factories(made);
    add_writes(made);
    return made;
  }();
  return table;
}

Tensors run(const Json& program, Tensors live) {
  for (const Json& step : program.at("steps").as_array()) {
    Tensors in;
    for (const Json& i : step.at("in").as_array()) in.push_back(live[static_cast<size_t>(i.as_int())]);
    Tensors out = steps().at(step.at("op").as_string())(Step{in, step.at("p")});
    live.insert(live.end(), out.begin(), out.end());
  }
  Tensors results;
  for (const Json& i : program.at("results").as_array())
    results.push_back(live[static_cast<size_t>(i.as_int())]);
  return results;
}

Tensor total(const Tensors& results) {
  Tensor sum;
  Tensors sums;
  for (const Tensor& result : results)
    if (is_floating(result.dtype())) sums.push_back(result.sum());
  for (const Tensor& part : sums) sum = sum.defined() ? sum + part : part;
  return sum;
}

// What a node of sizes gives for the example; nothing for any other node.
std::optional<Value> size_for_example(const Node& node) {
  if (node.kind() != NodeKind::kCallFunction || node.args().empty()) return std::nullopt;
  const Operator* op = node.target().op();
  const Node* of = node_in(node.args()[0]);
  if (op && of && op->schema().returns.size() == 1 && op->schema().returns[0].type.is(Type::Kind::kSymInt)) {
    const Tensor& tensor = of->meta_or_null()->value.tensor_ref();
    SymInt size = node.args().size() > 1 ? tensor.size(node.args()[1].to_int()) : tensor.numel();
    return Value(*size.hint());
  }
  if (op || !node.target().function()) return std::nullopt;
  for (const Value& arg : node.args())
    if (!arg.is_number()) return std::nullopt;
  return call_target(node.target(), node.args());
}

// The graph with sizes as the numbers that they are for the example: who reads a size where does not count.
std::string code_with_plain_sizes(const GraphModule& module) {
  Graph& graph = module.graph();
  for (Node* node = graph.front(); node;) {
    Node* next = node->next();
    if (std::optional<Value> size = size_for_example(*node)) {
      auto plain = [&](Node& used) { return &used == node ? *size : value_of(used); };
      for (Node* user : node->users().list()) {
        ValueList args;
        for (const Value& arg : user->args()) args.push_back(map_nodes(arg, plain));
        user->set_args(std::move(args));
        Kwargs kwargs;
        for (const auto& [name, value] : user->kwargs()) kwargs.emplace_back(name, map_nodes(value, plain));
        user->set_kwargs(std::move(kwargs));
      }
      graph.erase(*node);
    }
    node = next;
  }
  return graph.code();
}

std::string captured(const Json& program) {
  const std::string kind = program.at("kind").as_string();
  const func::Fn f = [&](const Tensors& inputs) { return run(program, inputs); };
  func::Fn loss = [&](const Tensors& inputs) { return Tensors{total(run(program, inputs))}; };
  ValueList inputs;
  for (const Json& sizes : program.at("inputs").as_array()) {
    std::vector<SymInt> shape;
    for (const Json& size : sizes.as_array()) shape.emplace_back(size.as_int());
    inputs.push_back(randn(shape));
  }
  MakeGraphOptions options{.keep_dead_code = true};
  if (kind == "fake") options.mode = CaptureMode::kFake;
  if (kind == "symbolic") options.mode = CaptureMode::kSymbolic;
  auto code_of = [&](auto function) {
    return code_with_plain_sizes(make_graph(function, options).capture(inputs));
  };
  if (kind == "functionalize") return code_of(func::functionalize(f));
  if (kind == "functional_grad") return code_of(func::functionalize(func::grad(loss)));
  if (kind == "grad") return code_of(func::grad(loss));
  if (kind == "vmap") return code_of(func::vmap(f));
  if (kind == "vmap_grad") return code_of(func::vmap(func::grad(loss)));
  return code_of(f);
}

}  // namespace
}  // namespace weft

int main(int, char** argv) {
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  const weft::Json programs = weft::Json::parse(text.str());
  weft::Json codes;
  for (const weft::Json& program : programs.as_array()) {
    std::string code;
    try {
      code = weft::captured(program);
    } catch (const std::exception& error) {
      code = std::string("error: ") + error.what();
    }
    codes.push_back(weft::Json(code));
  }
  std::cout << codes.to_text() << "\n";
}
