// The rows of TestExport about values that only data tell: what a program checks of them decides its later
// branches, and is asserted when it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "seeds/support/file_check.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/capture/make_graph.h"
#include "weft/core/from_data.h"
#include "weft/nn/functional.h"
#include "weft/ops/conversions.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::FileCheck;
using testing::for_each_variant;
using testing::only_tensor;

Tensor count_of(int64_t value) { return full({}, value, kInt64); }
SymInt int_in(const Tensor& tensor) { return tensor.item().to_sym_int(); }
constexpr const char* kAssertScalar = "torch.ops.aten._assert_scalar.default";

void expect_asserted(const ExportedProgram& program, int times) {
  FileCheck().check_count(kAssertScalar, times, true).run(program.graph_module().code());
}

struct FillsRows : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt b = int_in(x);
    check_size_like(b);
    return full({b, 1}, 1);
  }
  WEFT_ARGS(x)
};

TEST(TestDynamismExpression, test_export_inline_constraints) {
  const Tensor x = from_data<int64_t>({3});
  const Tensor wanted = FillsRows()(x);
  EXPECT_EQ(describe(wanted).str(), "i64[3, 1]");
  for_each_variant([&](const Exporter& exports) {
    const ExportedProgram program = exports(FillsRows(), {x});
    testing::expect_equal(only_tensor(program.module().call({x})), wanted);
    FileCheck().check_not("full.default([3").run(program.graph_module().code());
  });
  const GraphModule graph = make_graph(FillsRows(), {.mode = CaptureMode::kSymbolic})(x);
  testing::expect_equal(only_tensor(graph.call({x})), wanted);
  FileCheck().check("full.default([").check_not("3").check(", 1]").run(graph.code());
}

struct FillsFourOrFive : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt b = int_in(x);
    check_size_like(b);
    check(b >= 4);
    check(b <= 5);
    return full({b, 1}, 1);
  }
  WEFT_ARGS(x)
};

TEST(TestDynamismExpression, test_export_constraints_error) {
  for_each_variant([](const Exporter& exports) {
    GraphModule module = exports(FillsFourOrFive(), {from_data<int64_t>({3})}).module();
    EXPECT_ERROR(module.call({from_data<int64_t>({3})}), "Invalid value range for 3 between [4, 5]");
  });
}

struct CosByCount : nn::Module {
  Tensor forward(const Tensor& x) {
    const Tensor y = nonzero(x);
    if (y.size(0) > 2) return x.cos();
    return x.sin();
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_raise_user_error_when_guard_on_data_dependent_operation) {
  for_each_variant([](const Exporter& exports) {
    const auto run = [&] { exports(CosByCount(), {from_data<int64_t>({2, 3, 5})}); };
    EXPECT_ERROR_TYPE(DataDependentError, run(), "Could not guard on data-dependent expression");
    EXPECT_ERROR_TYPE(UserError, run(), "Could not guard on data-dependent expression");
  });
}

TEST(TestExport, test_error_does_not_reference_eager_fallback) {
  for_each_variant([](const Exporter& exports) {
    try {
      exports(CosByCount(), {from_data<int64_t>({2, 3, 5})});
      ADD_FAILURE() << "expected an error";
    } catch (const DataDependentError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("Could not guard on data-dependent expression"));
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("fall back to eager")));
    }
  });
}

struct ViewsUnchecked : nn::Module {
  Tensor forward(const Tensor& x) { return randn({24}).view({int_in(x), 4}); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_check_is_size_error) {
  for_each_variant([](const Exporter& exports) {
    const auto run = [&] { exports(ViewsUnchecked(), {count_of(6)}); };
    EXPECT_ERROR_TYPE(DataDependentError, run(), "Could not guard on data-dependent expression");
    EXPECT_ERROR_TYPE(UserError, run(), "Tried to use data-dependent value in the subsequent computation");
  });
}

struct EqualSum : nn::Module {
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& x3, const Tensor& y) {
    const SymInt z1 = int_in(x1), z2 = int_in(x2), z3 = int_in(x3);
    check(z1 == z2 + z3);
    if (z2 + z3 == z1) return y * 2;
    return y + 3;
  }
  WEFT_ARGS(x1, x2, x3, y)
};
struct UnequalSum : nn::Module {
  Tensor forward(const Tensor& x1, const Tensor& x2, const Tensor& x3, const Tensor& y) {
    const SymInt z1 = int_in(x1), z2 = int_in(x2), z3 = int_in(x3);
    check(z1 != z2 + z3);
    if (z2 + z3 == z1) return y * 2;
    return y + 3;
  }
  WEFT_ARGS(x1, x2, x3, y)
};

TEST(TestExport, test_torch_check_eq_commutativity) {
  for_each_variant([](const Exporter& exports) {
    const Tensor y = randn({1});
    const ValueList equal = {count_of(6), count_of(3), count_of(3), y};
    EXPECT_TRUE(close(only_tensor(exports(EqualSum(), equal).module().call(equal)), y * 2));
    const ValueList unequal = {count_of(6), count_of(6), count_of(6), y};
    EXPECT_TRUE(close(only_tensor(exports(UnequalSum(), unequal).module().call(unequal)), y + 3));
  });
}

struct AddsLargest : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) {
    const SymInt n = int_in(x.max());
    check(n >= 2);
    check(n <= 10);
    check_size_like(n);
    return y + Scalar(n);
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_constrain_size_with_constrain_value) {
  const Tensor of_ones = ones({3, 4}, kInt64), of_threes = full({3, 4}, 3, kInt64), y = randn({3, 4});
  EXPECT_ERROR(AddsLargest()(of_ones, y), "Expected cond to be True, but got False");
  for_each_variant([&](const Exporter& exports) {
    GraphModule module = exports(AddsLargest(), {of_threes, y}).module();
    EXPECT_TRUE(close(only_tensor(module.call({of_threes, y})), y + 3));
    EXPECT_ERROR(module.call({of_ones, y}), "Invalid value range for 1 between");
  });
}

struct OnesOfRows : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return y.sum() + ones({int_in(x), 5}).sum(); }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_automatic_constrain_size) {
  for_each_variant([](const Exporter& exports) {
    const Tensor y = ones({3, 3});
    GraphModule module = exports(OnesOfRows(), {count_of(2), y}).module();
    EXPECT_ERROR(module.call({count_of(-1), y}), "Invalid value range for -1 between");
    EXPECT_TRUE(close(only_tensor(module.call({count_of(1), y})), OnesOfRows()(count_of(1), y)));
  });
}

struct SquaresRow : nn::Module {
  Tensor freq = ones({5, 5});
  SquaresRow() { attribute("freq", freq); }
  Tensor forward(const Tensor& start_pos) {
    const SymInt pos = int_in(start_pos);
    check_size_like(pos);
    check(pos >= 0);
    check(pos <= 4);
    return select(freq, 0, pos) * select(freq, 0, pos);
  }
  WEFT_ARGS(start_pos)
};

TEST(TestExport, test_constrain_decomp) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(SquaresRow(), {count_of(1)});
    expect_asserted(program, 2);
    expect_asserted(program.run_decompositions(), 2);
    EXPECT_TRUE(close(only_tensor(program.module().call({count_of(3)})), ones({5})));
  });
}

struct EmptyRows : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt a = int_in(x);
    check(a >= 4);
    check(a <= 7);
    return empty({a, 4});
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_with_inline_constraints) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(EmptyRows(), {from_data<int64_t>({5})});
    GraphModule module = program.module();
    const Tensor result = only_tensor(module.call({from_data<int64_t>({6})}));
    EXPECT_EQ(describe_sizes(result.sizes()).str(), "[6, 4]");
    expect_asserted(program, 2);
    EXPECT_ERROR(module.call({from_data<int64_t>({30})}), "Invalid value range for 30 between [4, 7]");
  });
}

struct EmptyThenZeros : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt a = int_in(x);
    check(a >= 4);
    check(a <= 7);
    const Tensor rows = empty({a, 4});
    return cat({rows.transpose(0, 1), zeros({6, a})}, 0);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_with_inline_constraints_complex) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(EmptyThenZeros(), {from_data<int64_t>({6})});
    const Tensor result = only_tensor(program.module().call({from_data<int64_t>({5})}));
    EXPECT_EQ(describe_sizes(result.sizes()).str(), "[10, 5]");
    expect_asserted(program, 2);
  });
}

struct ZerosOfSize : nn::Module {
  Tensor forward(const Tensor& x) {
    const SymInt y = int_in(x);
    check_size_like(y);
    return zeros({y});
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_redundant_asserts) {
  for_each_variant([](const Exporter& exports) {
    auto check_once = [](const ExportedProgram& program) {
      const std::string code = program.graph_module().code();
      FileCheck().check_count("torch.ops.aten.sym_constrain_range.default", 1, true).run(code);
      FileCheck().check_count(kAssertScalar, 1, true).run(code);
    };
    const ExportedProgram program = exports(ZerosOfSize(), {count_of(2)});
    check_once(program);
    check_once(program.run_decompositions());
  });
}

struct FindsNonzero : nn::Module {
  Tensor forward(const Tensor& x) { return nonzero(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nonzero_2) {
  for_each_variant([](const Exporter& exports) {
    GraphModule module = exports(FindsNonzero(), {ones({2})}).module();
    const Tensor x = randn({2}), one = testing::vec({0, 1}).to(kFloat32);
    testing::expect_equal(only_tensor(module.call({x})), nonzero(x));
    testing::expect_equal(only_tensor(module.call({one})), nonzero(one));
  });
}

struct FirstRows : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) {
    const SymInt a = int_in(x);
    check_size_like(a);
    check(a <= y.size(0));
    return slice(y, 0, 0, a);
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_runtime_assert_with_size) {
  for_each_variant([](const Exporter& exports) {
    GraphModule module = exports(FirstRows(), {count_of(5), ones({10})},
                                 {.dynamic_shapes = {{"x", {}}, {"y", {{0, Dim("t")}}}}})
                             .module();
    const Tensor y = randn({13});
    EXPECT_TRUE(close(only_tensor(module.call({count_of(6), y})), FirstRows()(count_of(6), y)));
  });
}

struct TopScores : nn::Module {
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& scores, double score_thr, const Tensor& topk,
                                             const std::optional<Dict>&) {
    const Tensor valid = scores > score_thr;
    const Tensor kept = index(scores, {valid});
    const Tensor positions = nonzero(valid).to(scores.device());
    const SymInt n = int_in(minimum(topk, scalar_tensor(Scalar(positions.size(0)), kInt64)));
    check_size_like(n);
    check(kept.size(0) >= n);
    const auto [sorted, order] = sort(kept, -1, /*descending=*/true);
    const Tensor top = index(positions, {slice(order, 0, 0, n)});
    const std::vector<Tensor> columns = unbind(top, 1);
    return {slice(sorted, 0, 0, n), columns[1], columns[0]};
  }
  WEFT_ARGS(scores, score_thr, topk, results = nullopt)
};

TEST(TestExport, test_unbacked_slice) {
  for_each_variant([](const Exporter& exports) {
    const Tensor scores = from_data<float>({.1, .3, .2, .12, .7, .9, .02, .8, .08, .4, .1, .08}, {4, 3});
    Dict results;
    results.set("bbox_pred", from_data<float>({.2, .3, .4, .7, .1, .1, .5, .1}, {4, 2}));
    const ValueList args = {scores, 0.15, count_of(4), results};
    const ValueList got = tree_leaves(exports(TopScores(), args).module().call(args));
    const auto [best, labels, rows] = TopScores()(scores, 0.15, count_of(4), std::optional<Dict>(results));
    ASSERT_EQ(got.size(), 3u);
    EXPECT_TRUE(close(got[0].to_tensor(), best));
    EXPECT_TRUE(close(got[1].to_tensor(), labels));
    EXPECT_TRUE(close(got[2].to_tensor(), rows));
    EXPECT_TRUE(close(best, testing::vec({.9, .8, .7, .4}), 1e-6, 1e-6));
  });
}

struct AttendsToStart : nn::Module {
  Tensor forward(const Tensor& query, const Tensor& cache, const Tensor& start_pos) {
    const SymInt sp = int_in(start_pos);
    check_size_like(sp);
    check(sp >= 0);
    check(sp <= 126);
    const Tensor key = slice(cache, 1, 0, sp + 1), value = slice(cache, 1, 0, sp + 1);
    return scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2));
  }
  WEFT_ARGS(query, cache, start_pos)
};

TEST(TestOneOffModelExportResult, test_unbacked_sdpa) {
  const NoGrad no_grad;
  for_each_variant([](const Exporter& exports) {
    manual_seed(0);
    const Tensor cache = randn({1, 128, 16, 128}).to(kFloat16), query = randn({1, 1, 16, 128}).to(kFloat16);
    GraphModule module = exports(AttendsToStart(), {query, cache, from_data<int64_t>({0})}).module();
    for (const int64_t start : {0, 3, 126}) {
      const Tensor position = from_data<int64_t>({start});
      EXPECT_TRUE(allclose(only_tensor(module.call({query, cache, position})),
                           AttendsToStart()(query, cache, position), 1e-3, 1e-3));
    }
  });
}

struct ReadsList : nn::Module {
  void forward(const Tensor& x) { to_list(x); }
  WEFT_ARGS(x)
};

TEST(TestExportCustomClass, test_tolist_nonstrict_output) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(ReadsList(), {ones({3})});
    EXPECT_TRUE(program.module().call({ones({3})}).is_none());
  });
}

}  // namespace
}  // namespace weft
