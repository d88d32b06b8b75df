// Ports of TraceApi: verify.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/autograd/function.h"
#include "weft/capture/compiled_function.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"

namespace weft {
namespace {

using testing::args;
using testing::expect_equal;

Tensor with_grad(Tensor tensor) { return tensor.set_requires_grad(); }

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor forward(const Tensor& x) { return relu(fc(x)) * 2; }
  WEFT_ARGS(x)
};

// Its factors forward and backward grow with every call by what is set.
struct Drifting : autograd::Function<Drifting> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) {
    return x * (forward_factor += forward_step);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] * (backward_factor += backward_step)};
  }
  static inline double forward_factor, backward_factor, forward_step, backward_step;
  static CompiledFunction with(double forward_by, double backward_by) {
    forward_factor = backward_factor = 1;
    forward_step = forward_by;
    backward_step = backward_by;
    return compile_by_trace([](const Tensor& x) { return apply(x); });
  }
};

// The gradient of its parameter grows with every call, that of its argument does not.
struct DriftingScale : autograd::Function<DriftingScale> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x, const Tensor& by) { return x * by; }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0] * 2, grads[0].sum() * (factor += step)};
  }
  static inline double factor, step;
};
struct Scaled : nn::Module {
  Tensor by = parameter("by", full({}, 2.0));
  Tensor forward(const Tensor& x) { return DriftingScale::apply(x, by); }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_verify_ok) {
  Net net;
  CompiledFunction model = compile_by_trace(net);
  Tensor x = with_grad(randn({2, 4}));
  verify_compiled(model, args({x}));
  verify_compiled(model, x);
  EXPECT_EQ(model.hits(), 2);
  verify_compiled(compile_by_trace([](const Tensor& a, const Tensor& b) { return sigmoid(a * b); }),
                  args({with_grad(randn({3})), with_grad(randn({3}))}));
  verify_compiled(Drifting::with(1e-7, 1e-7), with_grad(ones({2})));
  // Gradients of parameters count, whether an argument has one or not.
  for (bool has_gradient : {true, false}) {
    Tensor given = ones({2}).set_requires_grad(has_gradient);
    DriftingScale::factor = 1, DriftingScale::step = 0;
    verify_compiled(compile_by_trace(Scaled()), given);
    DriftingScale::step = 1e-3;
    EXPECT_USER_ERROR(verify_compiled(compile_by_trace(Scaled()), given),
                      "JIT and real computation mismatch");
  }
}

TEST(TraceApi, test_api_verify_uncompiled_error) {
  const char* words = "Cannot verify an uncompiled module.  Add @torch.jit.compile to compile it";
  Net net;
  Tensor x = with_grad(randn({2, 4}));
  EXPECT_USER_ERROR(verify_compiled(net, x), words);
  EXPECT_USER_ERROR(verify_compiled(trace(net, x), x), words);
  EXPECT_USER_ERROR(verify_compiled([](const Tensor& t) { return t; }, x), words);
}

TEST(TraceApi, test_api_verify_multiple_outputs_need_loss) {
  CompiledFunction model = compile_by_trace([](const Tensor& x) { return std::tuple(x * 2, x.sin()); });
  Tensor x = with_grad(randn({3}));
  EXPECT_USER_ERROR(
      verify_compiled(model, x),
      "Model returns 2 outputs, but default loss function (torch.sum) can only handle a single output");
  int calls = 0;
  verify_compiled(model, x, [&](const Tensor& a, const Tensor& b) {
    ++calls;
    expect_equal(a, x * 2);
    expect_equal(b, x.sin());
    return (a * b).sum();
  });
  EXPECT_EQ(calls, 2);
}

TEST(TraceApi, test_api_verify_mismatch_error) {
  Tensor x = with_grad(ones({2}));
  EXPECT_USER_ERROR(verify_compiled(Drifting::with(1e-3, 0), x), "JIT and real computation mismatch");
  EXPECT_USER_ERROR(verify_compiled(Drifting::with(0, 1e-3), x), "JIT and real computation mismatch");
  EXPECT_USER_ERROR(verify_compiled(Drifting::with(5e-6, 0), x), "JIT and real computation mismatch");
}

TEST(TraceApi, test_api_verify_requires_cache_hit) {
  int calls = 0;
  CompiledFunction model = compile_by_trace([&](const Tensor& x) {
    ++calls;
    return x * 2;
  });
  Tensor x = with_grad(randn({3})), longer = with_grad(randn({4}));
  EXPECT_FALSE(model.has_trace_for(ValueList{x}));
  expect_equal(model(x), x * 2);
  EXPECT_TRUE(model.has_trace_for(ValueList{x}));
  EXPECT_FALSE(model.has_trace_for(ValueList{longer}));
  EXPECT_EQ(model.hits(), 0);
  expect_equal(model(x), x * 2);
  EXPECT_EQ(model.hits(), 1);
  EXPECT_EQ(calls, 1);
  model.clear_cache();
  EXPECT_FALSE(model.has_trace_for(ValueList{x}));
  auto forgets = [&](const Tensor& y) {
    model.clear_cache();
    return y.sum();
  };
  EXPECT_USER_ERROR(verify_compiled(model, x, forgets), "failed to use the compiled function");
}

struct Noisy : nn::Module {
  nn::BatchNorm2d norm = child("norm", nn::BatchNorm2d(2));
  nn::Dropout drop = child("drop", nn::Dropout(0.5));
  Tensor forward(const Tensor& x) { return drop(norm(x)) + norm.find("running_mean").to_tensor().sum(); }
  WEFT_ARGS(x)
};

// The state after verify is that of one run, and so are the random numbers.
void expect_one_run(const Device& device, const std::vector<Device>& devices) {
  Noisy once, net;
  once.to(device);
  net.to(device);
  net.load_state_dict(once.state_dict());
  Tensor x = with_grad(randn({3, 2, 4, 4}, std::nullopt, std::nullopt, device));
  Tensor next, next_there;
  {
    ForkRng restored = fork_rng(devices);
    once(x);
    next = rand({5});
    next_there = rand({5}, std::nullopt, std::nullopt, device);
  }
  verify_compiled(compile_by_trace(net), x, devices);
  expect_equal(rand({5}), next);
  expect_equal(testing::on_cpu(rand({5}, std::nullopt, std::nullopt, device)), testing::on_cpu(next_there));
  nn::NamedTensors wanted = once.state_dict(), got = net.state_dict();
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    expect_equal(testing::on_cpu(got[i].second), testing::on_cpu(wanted[i].second));
}

TEST(TraceApi, test_api_verify_restores_rng_and_state) {
  expect_one_run(kCpu, {});
  expect_one_run(Device("sim:0"), {Device("sim:0")});
  expect_one_run(Device("sim:1"), {Device("sim:0"), Device("sim:1")});
  EXPECT_USER_ERROR(verify_compiled(compile_by_trace(Net()), with_grad(randn({2, 4})), {Device("meta")}),
                    "meta has no data, and so no generator");
}

}  // namespace
}  // namespace weft
