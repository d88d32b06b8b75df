// How long it takes until a program is a graph, and what is done to graphs: weft's side of the suite
// "capture". The peer's side is capture_peer.py, with the same cases.
#include <malloc.h>
#include <unistd.h>
#include <weft/extend.h>

#include <fstream>

#include "server.h"

using namespace weft;

namespace {

constexpr double kGoal = 0.01, kTraceGoal = 1.0 / 30;
// Parts of other rows have no goal of their own; what only weft has is below zero.
constexpr double kPart = 0, kOwn = -1;

bench::Loop capture_of(CaptureMode mode, bool with_lines = false) {
  models::ResNet net = models::resnet50();
  Tensor x = randn({2, 3, 224, 224});
  return bench::repeat([=] { make_graph(net, {.mode = mode, .record_stack_traces = with_lines})(x); });
}

bench::Loop joint_of(CaptureMode mode) {
  models::ResNet net = models::resnet50();
  Tensor x = randn({2, 3, 224, 224});
  auto joint = [net](const Tensor& input) mutable {
    return autograd::grad({net(input).sum()}, net.parameters());
  };
  return bench::repeat([=] { make_graph(joint, {.mode = mode, .allow_real_inputs = true})(x); });
}

// x + 1, n times; returns the last, or x.
enum class Returns { kLast, kFirst };
Graph chain(int64_t nodes, Returns returns = Returns::kLast) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node* last = &x;
  const Operator& add = operator_named("aten::add.Tensor");
  for (int64_t i = 0; i < nodes; ++i) last = &graph.call(add, {value_of(*last), 1});
  graph.output(value_of(returns == Returns::kLast ? *last : x));
  return graph;
}

Tensor add_many(Tensor x, int64_t times) {
  for (int64_t i = 0; i < times; ++i) x = x + 1;
  return x;
}

// Small and large runs are to begin alike: what earlier ones left in the process's free memory and in the
// caches would serve the small one only.
void forget_the_past() {
  malloc_trim(0);
  static std::vector<char> other(size_t{128} << 20);
  for (size_t i = 0; i < other.size(); i += 64) ++other[i];
}

// What this process holds of the machine's memory.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(getpagesize());
}
// A captured node with all that is known of it, in bytes.
double bytes_of_a_node() {
  constexpr int64_t kNodes = 100'000;
  auto capture = [x = ones({3, 4})](int64_t nodes) {
    return make_graph([nodes](const Tensor& t) { return add_many(t, nodes); },
                      {.mode = CaptureMode::kFake})(x);
  };
  capture(1000);  // what is made once is not a node's
  const double before = resident_bytes();
  GraphModule captured = capture(kNodes);
  return (resident_bytes() - before) / static_cast<double>(kNodes);
}

bench::Cases cases() {
  bench::Cases all;
  // First, while no other case has left memory that could be used again.
  all.push_back({"bytes of a captured node", kOwn, {}, bytes_of_a_node});
  all.push_back({"make_graph of ResNet-50, fake", kGoal, [] { return capture_of(CaptureMode::kFake); }});
  all.push_back(
      {"make_graph of ResNet-50, symbolic", kGoal, [] { return capture_of(CaptureMode::kSymbolic); }});
  all.push_back({"ResNet-50 forward and backward, fake", kGoal, [] { return joint_of(CaptureMode::kFake); }});
  all.push_back(
      {"ResNet-50 forward and backward, symbolic", kGoal, [] { return joint_of(CaptureMode::kSymbolic); }});
  all.push_back(
      {"make_graph of ResNet-50, fake, again", kOwn, [] { return capture_of(CaptureMode::kFake); }});
  all.push_back({"make_graph of ResNet-50, fake, with lines", kOwn,
                 [] { return capture_of(CaptureMode::kFake, true); }});
  all.push_back({"symbolic_trace of ResNet-50", kTraceGoal, [] {
                   models::ResNet net = models::resnet50();
                   return bench::repeat([=] { symbolic_trace(net); });
                 }});
  all.push_back({"trace of ResNet-50 at 32x32, with the run", kPart, [] {
                   models::ResNet net = models::resnet50();
                   net.eval();
                   Tensor x = randn({1, 3, 32, 32});
                   return bench::repeat([=] { trace(net, x, {.check_trace = false}); });
                 }});
  all.push_back({"run of ResNet-50 at 32x32", kPart, [] {
                   models::ResNet net = models::resnet50();
                   net.eval();
                   Tensor x = randn({1, 3, 32, 32});
                   return bench::repeat([=]() mutable { net(x); });
                 }});
  all.push_back({"10^4 additions, eager", kOwn, [] {
                   Tensor x = ones({1});
                   return bench::repeat([=] { add_many(x, 10'000); });
                 }});
  all.push_back({"graph of 10^4 additions", kOwn, [] {
                   GraphModule module(chain(10'000));
                   Tensor x = ones({1});
                   return bench::repeat([=] { module(x); });
                 }});
  for (int64_t nodes : {100'000, 1'000'000}) {
    auto add = [&](std::string what, auto prepare, auto body) {
      auto prepare_cold = [prepare] {
        auto operand = prepare();
        forget_the_past();
        return operand;
      };
      all.push_back({what + (nodes == 100'000 ? ", 10^5 nodes" : ", 10^6 nodes"), kOwn,
                     [=] { return bench::repeat_on(prepare_cold, body); }});
    };
    auto graph = [nodes] { return chain(nodes); };
    add(
        "capture", [] { return ones({1}); },
        [nodes](const Tensor& x) {
          return make_graph([nodes](const Tensor& t) { return add_many(t, nodes); })(x);
        });
    add("print", graph, [](const Graph& g) { return g.code(); });
    add(
        "parse", [nodes] { return chain(nodes).code(); },
        [](const std::string& code) { return parse_code(code); });
    add(
        "dead code", [nodes] { return chain(nodes, Returns::kFirst); },
        [](Graph& g) { return g.eliminate_dead_code(); });
    add("copy", graph, [](const Graph& g) { return g.copy(); });
    add(
        "destruction", [nodes] { return std::unique_ptr<Graph>(new Graph(chain(nodes))); },
        [](std::unique_ptr<Graph>& g) {
          g.reset();
          return 0;
        });
  }
  return all;
}

}  // namespace

int main() {
  bench::Server(cases(), [](int threads) { set_num_threads(threads); }).serve();
}
