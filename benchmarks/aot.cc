// How long it takes until a program is a graph of its forward and backward, how that is cut in two, and what
// a call around the graphs costs: weft's side of the suite "aot". The peer's side is aot_peer.py, with the
// same cases.
#include <weft/extend.h>

#include "server.h"

using namespace weft;

namespace {

constexpr double kCapture = 0.01, kCut = 0.02, kBytes = 1;
constexpr double kOwn = -1;  // what only weft has

struct Loss : nn::Module {
  models::ResNet net = child("net", models::resnet50());
  Tensor forward(const Tensor& x) { return net(x).sum(); }
  WEFT_ARGS(x)
};
// The decoder without dropout: what it saves is what matmul and softmax need.
struct DecoderLoss : nn::Module {
  models::Gpt2 net = child("net", models::Gpt2({.dropout = 0}));
  Tensor forward(const Tensor& tokens, const Tensor& next) {
    return cross_entropy_loss(flatten(net(tokens), 0, 1), flatten(next));
  }
  WEFT_ARGS(tokens, next)
};

ValueList images() { return {randn({2, 3, 224, 224})}; }
ValueList tokens() { return {zeros({2, 256}, kInt64), zeros({2, 256}, kInt64)}; }

struct Joint {
  GraphModule graph;
  size_t outputs = 0;
};
// Forward and backward as one graph, which nothing is done with.
template <typename Compiled>
Joint joint_of(Compiled make, const ValueList& examples) {
  Joint joint;
  auto keep = [&](const GraphModule& graph, size_t outputs) {
    joint = {graph, outputs};
    return aot::default_partition(graph, outputs);
  };
  make(AotOptions{.partitioner = keep}).compile_for(examples);
  return joint;
}
template <typename M>
auto of_module(const M& module) {
  return [module](AotOptions options) { return aot_module(module, std::move(options)); };
}

// sin and cos in turns, and their derivatives: seven nodes of the joint graph for two of them.
ValueFunction chain(int64_t steps) {
  return make_callable([steps](Tensor x) {
    for (int64_t i = 0; i < steps; ++i) x = i % 2 ? x.cos() : x.sin();
    return x;
  });
}
constexpr int64_t kLong = 28'571, kShort = kLong / 10;
ValueList vector_input() { return {ones({64}).set_requires_grad()}; }

template <typename Make>
bench::Loop capture_of(Make make, const ValueList& examples) {
  return bench::repeat([=] { make(AotOptions{}).compile_for(examples); });
}
bench::Loop cut_of(const Joint& joint) {
  return bench::repeat([joint] { aot::min_cut_rematerialization_partition(joint.graph, joint.outputs); });
}

// Of what the forward computes: parameters, inputs and views of them are there anyway.
double saved_bytes(const Joint& joint) {
  const aot::Partition partition = aot::min_cut_rematerialization_partition(joint.graph, joint.outputs);
  std::unordered_set<std::string> inputs;
  for (Node* input : partition.forward.graph().placeholders()) inputs.insert(input->name());
  for (Node& node : partition.forward.graph()) {
    const Operator* op = node.target().op();
    if (op && op->has(Traits::kView) && inputs.contains(node.inputs()[0]->name())) inputs.insert(node.name());
  }
  auto is_input = [&](const std::string& name) { return inputs.contains(name); };
  return static_cast<double>(aot::report(partition).without(is_input).total_bytes);
}

// A graph that is there already: the call is what is around it.
bench::Loop overhead() {
  Tensor result = ones({1});
  auto compiler = [result](GraphModule&, const ValueList&) {
    return aot::CompiledGraph([result](Args) { return Value::list({result}); });
  };
  AotFunction f(
      [](Args inputs) {
        Tensor sum = inputs[0].to_tensor();
        for (const Value& input : inputs.subspan(1)) sum = sum + input.to_tensor();
        return Value(sum);
      },
      {.forward_compiler = compiler});
  ValueList inputs;
  for (int i = 0; i < 100; ++i) inputs.emplace_back(ones({1}));
  f.call(inputs);
  return bench::repeat([f, inputs] { f.call(inputs); });
}

bench::Loop steps_of_a_perceptron(bool is_compiled) {
  nn::Sequential net(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 4));
  auto optimizer = std::make_shared<optim::AdamW>(net.parameters());
  auto loss = [](const Tensor& y) { return y.square().mean(); };
  Tensor x = randn({8, 16});
  if (is_compiled) {
    TrainStep step = aot_train_step(net, loss, *optimizer);
    return bench::repeat([=] { (void)optimizer, step(x); });
  }
  return bench::repeat([=] {
    optimizer->zero_grad();
    loss(net(x)).backward();
    optimizer->step();
  });
}

bench::Cases cases() {
  bench::Cases all;
  all.push_back(
      {"joint graph of ResNet-50", kCapture, [] { return capture_of(of_module(Loss()), images()); }});
  all.push_back({"joint graph of a GPT-2 decoder", kCapture,
                 [] { return capture_of(of_module(DecoderLoss()), tokens()); }});
  all.push_back({"min-cut of ResNet-50", kCut, [] { return cut_of(joint_of(of_module(Loss()), images())); }});
  all.push_back({"min-cut of a GPT-2 decoder", kCut,
                 [] { return cut_of(joint_of(of_module(DecoderLoss()), tokens())); }});
  all.push_back({"bytes saved of ResNet-50", kBytes, {}, [] {
                   return saved_bytes(joint_of(of_module(Loss()), images()));
                 }});
  all.push_back({"bytes saved of a GPT-2 decoder", kBytes, {}, [] {
                   return saved_bytes(joint_of(of_module(DecoderLoss()), tokens()));
                 }});
  all.push_back(
      {"joint graph and min-cut, 10^5 nodes", kOwn, [] {
         return bench::repeat([examples = vector_input()] {
           aot_function(chain(kLong), {.partitioner = aot::min_cut_partitioner()}).compile_for(examples);
         });
       }});
  all.push_back(
      {"joint graph and min-cut, 10^4 nodes", kOwn, [] {
         return bench::repeat([examples = vector_input()] {
           aot_function(chain(kShort), {.partitioner = aot::min_cut_partitioner()}).compile_for(examples);
         });
       }});
  all.push_back({"call with 100 inputs", kOwn, overhead});
  all.push_back(
      {"training step of a small perceptron, eager", kOwn, [] { return steps_of_a_perceptron(false); }});
  all.push_back({"training step of a small perceptron", kOwn, [] { return steps_of_a_perceptron(true); }});
  return all;
}

}  // namespace

int main() {
  bench::Server(cases(), [](int threads) { set_num_threads(threads); }).serve();
}
