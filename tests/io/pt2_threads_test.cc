// One loaded program, called by many threads at once.
#include <gtest/gtest.h>

#include <thread>

#include "support/archives.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/io/pt2.h"

namespace weft {
namespace {

TEST(Pt2Threads, OneProgramRunsInSixteen) {
  const ExportedProgram program = parse_pt2(testing::archive_bytes("tied_weights"), "tied_weights.pt2");
  const GraphModule module = program.module();
  const ValueList inputs = program.example_inputs()->elements()[0].elements();
  auto run = [&](const GraphModule& m) {
    NoGrad no_grad;
    return tree_leaves(m.call(inputs))[0].to_tensor();
  };
  const Tensor wanted = run(module);
  std::vector<Tensor> results(16);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) results[i] = run(module);
      // Another module of the same program shares its weights.
      if (i % 2) results[i] = run(program.module());
    });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) testing::expect_equal(result, wanted);
}

}  // namespace
}  // namespace weft
