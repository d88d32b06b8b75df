// How long it takes to export programs, to check what a loaded one is given, and to solve what is asked of
// declared sizes: weft's side of the suite "export". The peer's side is export_peer.py.
#include <weft/extend.h>
#include <weft/weft.h>

#include "export/input_checks.h"
#include "export/size_solver.h"
#include "server.h"
#include "sym/build.h"

using namespace weft;

namespace {

constexpr double kGoal = 0.01;
constexpr double kOwn = -1;  // what only weft has

Dim any_batch() { return Dim("batch", {.min = 2, .max = 64}); }

bench::Loop export_of_resnet50() {
  models::ResNet net = models::resnet50();
  net.eval();
  const ExportOptions options{.dynamic_shapes = {{"x", {{0, any_batch()}}}}};
  return bench::repeat([=, x = randn({2, 3, 224, 224})] { export_for_training(net, {x}, options); });
}

bench::Loop export_of_gpt2() {
  models::Gpt2 net = models::gpt2_small();
  net.eval();
  const ExportOptions options{.dynamic_shapes = {{"tokens", {{0, any_batch()}}}}};
  return bench::repeat([=, x = zeros({2, 64}, kInt64)] { export_for_training(net, {x}, options); });
}

struct Chain : nn::Module {
  int64_t length = 0;
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = y + 1;
    return y;
  }
  WEFT_ARGS(x)
};
bench::Loop export_of_chain(int64_t length) {
  Chain chain;
  chain.length = length;
  const ExportOptions options{.dynamic_shapes = {{"x", {{0, any_batch()}}}}};
  return bench::repeat([=, x = randn({2, 3})] { export_for_training(chain, {x}, options); });
}

// Ten sizes, each of its own range, of a program that was saved and loaded.
struct Many : nn::Module {
  Tensor forward(const std::vector<Tensor>& xs) { return xs[0] + 1; }
  WEFT_ARGS(xs)
};
bench::Loop checks_of_ten_sizes() {
  ValueList xs;
  std::vector<ShapeSpec> specs;
  for (int i = 0; i < 10; ++i) {
    xs.emplace_back(randn({4 + i}));
    specs.push_back(ShapeSpec{{0, Dim("d" + std::to_string(i), {.min = 3, .max = 100})}});
  }
  const ExportedProgram program = parse_pt2(
      pt2_bytes(export_program(Many(), {Value::list(xs)},
                               {.dynamic_shapes = DynamicShapes::by_name({{"xs", ShapeSpec::list(specs)}})})),
      "many");
  return bench::repeat([checks = std::make_shared<InputChecks>(program), xs] { checks->check(xs); });
}

// Bounds, remainders and relations of four sizes.
bench::Loop solver_of_1000_guards() {
  Ref<ShapeEnv> env = ShapeEnv::create({.duck_shape = false});
  std::vector<SizeSolver::Unknown> unknowns;
  for (int i = 0; i < 4; ++i) {
    const sym::ValueRange range{2, 100000};
    unknowns.push_back({env->add_symbol({.hint = 5040, .declared = range, .is_size = true}), range});
  }
  std::vector<const sym::Expr*> conditions;
  for (int64_t i = 0; i < 1000; ++i) {
    const SymInt a = SymInt::from_expr(unknowns[static_cast<size_t>(i % 4)].symbol),
                 b = SymInt::from_expr(unknowns[static_cast<size_t>((i + 1) % 4)].symbol);
    const SymBool condition = i % 5 == 0   ? a % (1 + i % 7) == SymInt(0)
                              : i % 5 == 1 ? a + i <= b + 2000
                              : i % 5 == 2 ? a > SymInt(i)
                                           : a < SymInt(100000 - i);
    if (condition.is_symbolic()) conditions.push_back(condition.expr());
  }
  return bench::repeat([=] { SizeSolver(*env, unknowns, conditions).solve(); });
}

bench::Cases cases() {
  return {
      {"export of ResNet-50, any batch", kGoal, export_of_resnet50},
      {"export of GPT-2, any batch", kGoal, export_of_gpt2},
      {"export of a chain, 10^4 nodes", kOwn, [] { return export_of_chain(10'000); }},
      {"export of a chain, 10^5 nodes", kOwn, [] { return export_of_chain(100'000); }},
      {"checks of a loaded program, 10 dynamic sizes", kOwn, checks_of_ten_sizes},
      {"solver of declared sizes, 1,000 guards", kOwn, solver_of_1000_guards},
  };
}

}  // namespace

int main() {
  bench::Server(cases(), [](int threads) { set_num_threads(threads); }).serve();
}
