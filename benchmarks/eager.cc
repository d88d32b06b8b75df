// The suite "eager": calls of operators as a program makes them, one after the other. Compiled twice from
// this one text, for weft and for the peer; BENCH_API names the header that says which.
#include "server.h"
#include BENCH_API

namespace bench {
namespace {

using api::Tensor;
using Ints = std::vector<int64_t>;

void dispatch(Cases& cases) {
  cases.push_back({"add, 1 element", 0.25,
                   [] { return repeat([a = api::randn({1}), b = api::randn({1})] { api::add(a, b); }); }});
  cases.push_back({"add, 1 element, recording grad", 1.0 / 3, [] {
                     Tensor a = api::randn({1}), b = api::randn({1});
                     a.set_requires_grad(true);
                     return repeat([a, b] { api::add(a, b); });
                   }});
  cases.push_back({"add_, 1 element", 0.25, [] {
                     return repeat([a = api::randn({1}), b = api::zeros({1})]() mutable { a.add_(b); });
                   }});
  cases.push_back({"select", 0.25, [] { return repeat([a = api::randn({4, 4})] { a.select(0, 1); }); }});
  cases.push_back(
      {"transpose", 0.25, [] { return repeat([a = api::randn({4, 4})] { a.transpose(0, 1); }); }});
  cases.push_back({"empty({4})", 0.25, [] { return repeat([] { api::empty({4}); }); }});
}

constexpr int64_t kRows = 2500, kColumns = 4000;  // 10^7 elements

// The operands of a pointwise case: whole, every second element of a row, a row for all rows.
Tensor whole() { return api::randn({kRows, kColumns}); }
Tensor strided() { return api::randn({kRows, 2 * kColumns}).slice(1, 0, 2 * kColumns, 2); }
Tensor broadcast() { return api::randn({kColumns}).expand({kRows, kColumns}); }

void pointwise(Cases& cases) {
  struct Layout {
    const char* name;
    Tensor (*make)();
  };
  const Layout layouts[] = {{"", whole}, {", strided", strided}, {", broadcast", broadcast}};
  auto unary = [&](const std::string& name, auto function) {
    for (const Layout& layout : layouts)
      cases.push_back({name + " of 10^7" + layout.name, 1.0,
                       [=] { return repeat([x = layout.make(), function] { function(x); }); }});
  };
  auto add_to_whole = [&](const std::string& layout, auto make) {
    cases.push_back(
        {"add of 10^7" + layout, 1.0, [=] { return repeat([x = whole(), y = make()] { api::add(x, y); }); }});
  };
  for (const Layout& layout : layouts) add_to_whole(layout.name, layout.make);
  add_to_whole(", transposed", [] { return api::randn({kColumns, kRows}).transpose(0, 1); });
  add_to_whole(", broadcast column", [] { return api::randn({kRows, 1}); });
  unary("exp", [](const Tensor& x) { return api::exp(x); });
  unary("tanh", [](const Tensor& x) { return api::tanh(x); });
  unary("gelu", [](const Tensor& x) { return api::gelu(x); });
}

void reductions(Cases& cases) {
  auto matrix = [] { return api::randn({4096, 1024}); };
  auto over = [&](const std::string& name, auto function) {
    cases.push_back({name + " of [4096, 1024]", 1.0,
                     [=] { return repeat([x = matrix(), function] { function(x, 1); }); }});
    cases.push_back({name + " of [4096, 1024], slow dimension", 1.0,
                     [=] { return repeat([x = matrix(), function] { function(x, 0); }); }});
  };
  over("sum", [](const Tensor& x, int64_t dim) { return x.sum(Ints{dim}); });
  cases.push_back({"sum of [4096, 1024], both", 1.0, [=] { return repeat([x = matrix()] { x.sum(); }); }});
  over("softmax", [](const Tensor& x, int64_t dim) { return api::softmax(x, dim); });
  // Layers are normalised over trailing dimensions: the slow one comes last in the transpose.
  auto layer_norm = [&](const std::string& name, bool transposed) {
    cases.push_back({name, 1.0, [=] {
                       Tensor x = transposed ? matrix().transpose(0, 1) : matrix();
                       Ints shape{transposed ? 4096 : 1024};
                       Tensor weight = api::randn(shape), bias = api::randn(shape);
                       return repeat([=] { api::layer_norm(x, shape, weight, bias); });
                     }});
  };
  layer_norm("layer_norm of [4096, 1024]", false);
  layer_norm("layer_norm of [4096, 1024], slow dimension", true);
}

void matmuls(Cases& cases) {
  for (int64_t n : {256, 512, 1024, 2048})
    cases.push_back({"matmul of " + std::to_string(n), 1.05, [n] {
                       return repeat([a = api::randn({n, n}), b = api::randn({n, n})] { api::matmul(a, b); });
                     }});
  cases.push_back({"bmm of 32 x [128, 256] x [256, 128]", 1.05, [] {
                     Tensor a = api::randn({32, 128, 256}), b = api::randn({32, 256, 128});
                     return repeat([=] { api::bmm(a, b); });
                   }});
}

struct Convolution {
  std::string name;
  int64_t in, out, side, kernel, stride, groups;
};

void convolutions(Cases& cases) {
  const Convolution shapes[] = {
      {"conv 7x7, 3 to 64, 224 (ResNet-50)", 3, 64, 224, 7, 2, 1},
      {"conv 3x3, 64 to 64, 56 (ResNet-50)", 64, 64, 56, 3, 1, 1},
      {"conv 3x3, 256 to 256, 14 (ResNet-50)", 256, 256, 14, 3, 1, 1},
      {"conv 3x3, 512 to 512, 7 (ResNet-50)", 512, 512, 7, 3, 1, 1},
      {"conv 1x1, 64 to 256, 56 (ResNet-50)", 64, 256, 56, 1, 1, 1},
      {"conv 1x1, 1024 to 256, 14 (ResNet-50)", 1024, 256, 14, 1, 1, 1},
      {"conv 1x1, 32 to 192, 28 (MobileNet)", 32, 192, 28, 1, 1, 1},
      {"conv depthwise 3x3, 144, 56 (MobileNet)", 144, 144, 56, 3, 1, 144},
      {"conv depthwise 3x3, 576, 14 (MobileNet)", 576, 576, 14, 3, 1, 576},
  };
  for (const Convolution& c : shapes)
    cases.push_back({c.name, 1.05, [c] {
                       Tensor x = api::randn({1, c.in, c.side, c.side});
                       Tensor weight = api::randn({c.out, c.in / c.groups, c.kernel, c.kernel});
                       Tensor bias = api::randn({c.out});
                       Ints stride(2, c.stride), padding(2, c.kernel / 2), dilation(2, 1);
                       return repeat(
                           [=] { api::conv2d(x, weight, bias, stride, padding, dilation, c.groups); });
                     }});
}

Loop mlp_backward() {
  const int64_t widths[] = {784, 512, 256, 10};
  Tensor x = api::randn({64, widths[0]});
  std::vector<Tensor> parameters;
  for (int layer = 0; layer < 3; ++layer) {
    Tensor weight = api::randn({widths[layer + 1], widths[layer]}) * 0.05,
           bias = api::zeros({widths[layer + 1]});
    weight.set_requires_grad(true);
    bias.set_requires_grad(true);
    x = api::linear(x, weight, bias);
    if (layer < 2) x = api::relu(x);
    parameters.insert(parameters.end(), {weight, bias});
  }
  Tensor loss = (x * x).mean();
  return repeat([=] { gradients(loss, parameters); });
}

// Forward and backward of so many additions in a row; the tape is freed as it goes.
Loop chain(int64_t length) {
  Tensor start = api::randn({1}), step = api::randn({1});
  start.set_requires_grad(true);
  return repeat([=] {
    Tensor x = start;
    for (int64_t i = 0; i < length; ++i) x = api::add(x, step);
    x.backward();
  });
}

void backward(Cases& cases) {
  cases.push_back({"backward of a 3-layer MLP, batch 64", 0.8, mlp_backward});
  cases.push_back({"chain of 10^5 nodes, forward + backward", 0.5, [] { return chain(100'000); }});
  cases.push_back({"chain of 10^6 nodes, forward + backward", 0.5, [] { return chain(1'000'000); }});
}

Cases all_cases() {
  Cases cases;
  dispatch(cases);
  pointwise(cases);
  reductions(cases);
  matmuls(cases);
  convolutions(cases);
  backward(cases);
  return cases;
}

}  // namespace
}  // namespace bench

int main() { bench::Server(bench::all_cases(), bench::set_threads).serve(); }
