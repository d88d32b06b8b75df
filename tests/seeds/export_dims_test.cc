// The rows of TestExport about declared dimensions: ranges, derived dimensions, what an input must be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

// Whether `text` has the fragments in this order.
::testing::AssertionResult has_in_order(const std::string& text, const std::vector<std::string>& fragments) {
  size_t at = 0;
  for (const std::string& fragment : fragments) {
    const size_t found = text.find(fragment, at);
    if (found == text.npos)
      return ::testing::AssertionFailure() << "'" << fragment << "' is not in, or not in order in:\n" << text;
    at = found + fragment.size();
  }
  return ::testing::AssertionSuccess();
}

template <typename F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

struct AddOne : nn::Module {
  Tensor forward(const Tensor& x) { return x + 1; }
  WEFT_ARGS(x)
};

TEST(TestDynamismExpression, test_export_constraints_error_not_in_range) {
  for_each_variant([](const Exporter& exports) {
    const Dim dim("dim_x", {.min = 6});
    const auto run = [&] { exports(AddOne(), {zeros({3})}, {.dynamic_shapes = {{"x", {{0, dim}}}}}); };
    EXPECT_ERROR(run(), "not in range");
    EXPECT_THROW(run(), UserError);
  });
}

struct AddTail : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + slice(y, 0, 1); }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_derived_dim_basic) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {randn({5}), randn({6})};
    const Dim dimx("dimx", {.min = 3, .max = 6});
    auto shapes = [&](const Dim& dimy) {
      return ExportOptions{.dynamic_shapes = {{"x", {{0, dimx}}}, {"y", {{0, dimy}}}}};
    };
    EXPECT_TRUE(has_in_order(
        message_of([&] { exports(AddTail(), args, shapes(Dim("dimy", {.min = 4, .max = 7}))); }),
        {"Constraints violated (dimy)!", "The values of dimy", "must always be related to the values of dimx",
         "by", "Suggested fixes:", "dimy = dimx + 1"}));
    EXPECT_TRUE(has_in_order(message_of([&] { exports(AddTail(), args, shapes(dimx * 2)); }),
                             {"Expected input", "size", "to be equal to 2*dimx, where dimx = 5, but got 6"}));
    const ExportedProgram program = exports(AddTail(), args, shapes(dimx + 1));
    GraphModule module = program.module();
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({randn({4}), randn({6})}); }),
                             {"Expected input", "shape", "to be equal to 5, but got 6"}));
    EXPECT_EQ(only_tensor(module.call({randn({4}), randn({5})})).size(0), 4);
  });
}

struct AddStrided : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + slice(y, 0, 1, std::nullopt, 2); }
  WEFT_ARGS(x, y)
};
struct AddTailStrided : nn::Module {
  Tensor forward(const Tensor& z, const Tensor& y) { return slice(z, 0, 1) + slice(y, 0, 1, std::nullopt, 2); }
  WEFT_ARGS(z, y)
};

TEST(TestExport, test_derived_dim_nested) {
  for_each_variant([](const Exporter& exports) {
    const Dim dimx("dimx", {.min = 3, .max = 6});
    {
      const ExportedProgram program =
          exports(AddStrided(), {randn({5}), randn({11})},
                  {.dynamic_shapes = {{"x", {{0, dimx}}}, {"y", {{0, dimx * 2 + 1}}}}});
      EXPECT_EQ(only_tensor(program.module().call({randn({4}), randn({9})})).size(0), 4);
    }
    const ValueList args = {randn({6}), randn({11})};
    auto run = [&](const Dim& dimz, const Dim& dimy, const ValueList& examples) {
      return exports(AddTailStrided(), examples, {.dynamic_shapes = {{"z", {{0, dimz}}}, {"y", {{0, dimy}}}}});
    };
    const ExportedProgram first = run(dimx, 2 * dimx - 1, args);
    EXPECT_EQ(only_tensor(first.module().call({randn({5}), randn({9})})).size(0), 4);
    EXPECT_TRUE(has_in_order(message_of([&] { run(dimx + 1, 2 * dimx - 1, args); }),
                             {"Expected input", "size", "to be equal to 2*dimx - 1, where dimx = 5, but got 11"}));
    GraphModule second = run(dimx + 1, 2 * dimx + 1, args).module();
    EXPECT_TRUE(has_in_order(message_of([&] { second.call({randn({8}), randn({15})}); }),
                             {"Expected input", "shape", "to be <= 7, but got 8"}));
    EXPECT_TRUE(has_in_order(message_of([&] { second.call({randn({5}), randn({8})}); }),
                             {"Expected input", "shape", "to be equal to 9, but got 8"}));
    EXPECT_EQ(only_tensor(second.call({randn({5}), randn({9})})).size(0), 4);
  });
}

struct HalveByParity : nn::Module {
  Tensor forward(const Tensor& w) {
    if (w.size(0) % 2 == 0) return slice(w, 0, 0, std::nullopt, 2);
    return slice(w, 0, 1, -1, 2);
  }
  WEFT_ARGS(w)
};

TEST(TestExport, test_derived_dim_integer) {
  for_each_variant([](const Exporter& exports) {
    const Dim dimx("dimx", {.min = 3, .max = 6});
    const ValueList args = {randn({10})};
    auto run = [&](const Dim& dimw) {
      return exports(HalveByParity(), args, {.dynamic_shapes = {{"w", {{0, dimw}}}}});
    };
    EXPECT_TRUE(has_in_order(message_of([&] { run(dimx * 2 + 1); }),
                             {"Expected shape", "= 10 of input Tensor to be of the form 2*dimx + 1, where dimx is an "
                                                "integer"}));
    GraphModule module = run(dimx * 2).module();
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({randn({9})}); }),
                             {"Expected input", "shape", "= 9 to be of the form 2*s1, where s1 is an integer"}));
    EXPECT_EQ(only_tensor(module.call({randn({8})})).size(0), 4);
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({randn({14})}); }),
                             {"Expected input", "shape", "to be <= 12, but got 14"}));
  });
}

struct AddHalves : nn::Module {
  Tensor forward(const Tensor& u, const Tensor& v) {
    return slice(u, 0, 0, std::nullopt, 2) + slice(v, 0, 0, std::nullopt, 2);
  }
  WEFT_ARGS(u, v)
};

TEST(TestExport, test_derived_dim_repeat_derived) {
  for_each_variant([](const Exporter& exports) {
    const Dim twice = Dim("dimx", {.min = 3, .max = 6}) * 2;
    const ExportedProgram program =
        exports(AddHalves(), {randn({10}), randn({10})},
                {.dynamic_shapes = {{"u", {{0, twice}}}, {"v", {{0, twice}}}}});
    EXPECT_EQ(only_tensor(program.module().call({randn({8}), randn({8})})).size(0), 4);
  });
}

struct AddThree : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y, const Tensor& z) { return x + slice(y, 0, 1) + slice(z, 0, 2); }
  WEFT_ARGS(x, y, z)
};
struct AddFive : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y, const Tensor& z, const Tensor& x1, const Tensor& x2) {
    return x + slice(y, 0, 1) + slice(z, 0, 2) + x1 + x2;
  }
  WEFT_ARGS(x, y, z, x1, x2)
};

TEST(TestExport, test_derived_dim_out_of_order) {
  for_each_variant([](const Exporter& exports) {
    const Dim dimy("dimy", {.min = 5, .max = 7});
    GraphModule module =
        exports(AddThree(), {randn({5}), randn({6}), randn({7})},
                {.dynamic_shapes = {{"x", {{0, dimy - 1}}}, {"y", {{0, dimy}}}, {"z", {{0, dimy + 1}}}}})
            .module();
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({randn({6}), randn({7}), randn({5})}); }),
                             {"Expected input", "shape", "to be equal to 8, but got 5"}));
    EXPECT_EQ(only_tensor(module.call({randn({6}), randn({7}), randn({8})})).size(0), 6);
  });
}

TEST(TestExport, test_derived_dim_out_of_order_repeat_derived) {
  for_each_variant([](const Exporter& exports) {
    const Dim dimy("dimy", {.min = 5, .max = 7}), dimx = dimy - 1, dimz = dimy + 1;
    const Tensor x = randn({5});
    for (const bool is_aliased : {false, true}) {
      const ValueList args = {x, randn({6}), randn({7}), is_aliased ? x : randn({5}), is_aliased ? x : randn({5})};
      GraphModule module = exports(AddFive(), args,
                                   {.dynamic_shapes = {{"x", {{0, dimx}}},
                                                       {"y", {{0, dimy}}},
                                                       {"z", {{0, dimz}}},
                                                       {"x1", {{0, dimx}}},
                                                       {"x2", {{0, dimz - 2}}}}})
                               .module();
      EXPECT_TRUE(has_in_order(
          message_of([&] { module.call({randn({6}), randn({7}), randn({8}), randn({6}), randn({5})}); }),
          {"Expected input", "shape", "to be equal to 6, but got 5"}));
      EXPECT_EQ(
          only_tensor(module.call({randn({6}), randn({7}), randn({8}), randn({6}), randn({6})})).size(0), 6);
    }
  });
}

struct FlatPlus : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x.reshape({-1}) + y; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_specialize_derived_dim_roots) {
  for_each_variant([](const Exporter& exports) {
    const Dim dy("dy", {.min = 6});
    const std::string message = message_of([&] {
      exports(FlatPlus(), {randn({6, 2}), randn({12})},
              {.dynamic_shapes = {{"x", ShapeSpec::each({dy - 6, 2})}, {"y", ShapeSpec::each({dy})}}});
    });
    EXPECT_TRUE(has_in_order(message, {"Specializations unexpectedly required (dy)!", "dy - 6",
                                       "must be specialized to 6 because the guards generated for it are too complex",
                                       "Suggested fixes", "dy = 12"}));
    EXPECT_EQ(message.find("dy - 6 = 6"), message.npos) << message;
  });
}

struct StaticDims : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(6, 4));
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y, const Tensor& z) {
    return {linear(x) + slice(y, 0, 1), z * 2.0};
  }
  WEFT_ARGS(x, y, z)
};

TEST(TestExport, test_static_dim_constraints) {
  for_each_variant([](const Exporter& exports) {
    const StaticDims module;
    const ValueList args = {randn({4, 6}), randn({5, 4}), randn({3, 3})};
    const Dim dx("dx", {.min = 3, .max = 6}), dy = dx + 1, dz("dz", {.min = 3, .max = 6});
    using S = ShapeSpec;
    const std::vector<DynamicShapes> good = {
        DynamicShapes::by_position({{{0, dx}, {1, 6}}, {{0, dy}, {1, 4}}, {{0, dz}, {1, 3}}}),
        DynamicShapes::by_position(
            {S::each({dx, std::nullopt}), S::each({dy, 4}), S::each({dz, 3})}),
        DynamicShapes::by_position({S::each({std::nullopt, 6}), S::each({5, std::nullopt}),
                                    S::each({std::nullopt, std::nullopt})}),
        DynamicShapes::by_position({S::each({4, 6}), {{0, std::nullopt}, {1, 4}}, {{0, std::nullopt}, {1, 3}}}),
    };
    const auto [first, second] = module(args[0].to_tensor(), args[1].to_tensor(), args[2].to_tensor());
    for (size_t i = 0; i < good.size(); ++i) {
      const ExportedProgram program = exports(module, args, {.dynamic_shapes = good[i]});
      const ValueList results = tree_leaves(program.module().call(args));
      EXPECT_TRUE(testing::close(results[0].to_tensor(), first));
      EXPECT_TRUE(testing::close(results[1].to_tensor(), second));
      if (i != 1) continue;
      EXPECT_EQ(program.range_constraints().size(), 3u);
      for (const RangeConstraint& constraint : program.range_constraints())
        EXPECT_LT(constraint.range.lo, constraint.range.hi);
    }
    EXPECT_ERROR(
        exports(module, args,
                {.dynamic_shapes = DynamicShapes::by_position({S::each({5, std::nullopt}), {}, {}})}),
        "Static shape constraint of 5 does not match input size of 4, for ");
    EXPECT_ERROR(exports(module, args,
                         {.dynamic_shapes = DynamicShapes::by_position(
                              {S::each({dx, 9}), S::each({dy, 4}), S::each({3, 3})})}),
                 "Static shape constraint of 9 does not match input size of 6, for ");
  });
}

struct Twice : nn::Module {
  Tensor forward(const Tensor& x) { return x * 2; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_dim_1_2) {
  for_each_variant([](const Exporter& exports) {
    const Dim dx("dx", {.min = 1, .max = 2});
    const ExportedProgram program =
        exports(Twice(), {ones({2, 2})}, {.dynamic_shapes = {{"x", {{0, dx}, {1, std::nullopt}}}}});
    GraphModule module = program.module();
    EXPECT_EQ(only_tensor(module.call({ones({1, 2})})).size(0), 1);
    EXPECT_EQ(only_tensor(module.call({ones({2, 2})})).size(0), 2);
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({ones({3, 2})}); }),
                             {"Expected input at ", "to be <= 2, but got 3"}));
    ASSERT_EQ(program.range_constraints().size(), 1u);
    EXPECT_EQ(program.range_constraints()[0].range, (sym::ValueRange{1, 2}));
  });
}

TEST(TestExport, test_derived_dim_1_2) {
  for_each_variant([](const Exporter& exports) {
    const Dim dx("dx", {.min = 1, .max = 2});
    const ExportedProgram program = exports(
        AddTail(), {ones({2, 2}), ones({3, 2})},
        {.dynamic_shapes = {{"x", {{0, dx}, {1, std::nullopt}}}, {"y", {{0, dx + 1}, {1, std::nullopt}}}}});
    GraphModule module = program.module();
    EXPECT_EQ(only_tensor(module.call({ones({1, 2}), ones({2, 2})})).size(0), 1);
    EXPECT_EQ(only_tensor(module.call({ones({2, 2}), ones({3, 2})})).size(0), 2);
    std::vector<int64_t> lower, upper;
    for (const RangeConstraint& constraint : program.range_constraints()) {
      lower.push_back(constraint.range.lo);
      upper.push_back(constraint.range.hi);
    }
    std::ranges::sort(lower);
    std::ranges::sort(upper);
    EXPECT_EQ(lower, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(upper, (std::vector<int64_t>{2, 3}));
  });
}

struct MatMul : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return matmul(x, y); }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_multiple_definitions_same_name_dim) {
  for_each_variant([](const Exporter& exports) {
    const Dim a("C", {.min = 3}), b("C", {.max = 12});
    EXPECT_TRUE(has_in_order(
        message_of([&] {
          exports(MatMul(), {randn({10, 10}), randn({10, 10})},
                  {.dynamic_shapes = {{"x", ShapeSpec::each({a, b})}, {"y", ShapeSpec::each({b, a})}}});
        }),
        {"Found different definitions Dim(", "min=3) and Dim(", "max=12) for the same symbolic dimension"}));
  });
}

TEST(TestExport, test_not_correct_dim) {
  EXPECT_ERROR(dynamic_dim(from_data(std::vector<int64_t>{5}, {}), 0), "Cannot mark 0-dimension tensors to be dynamic");
  EXPECT_ERROR(dynamic_dim(ones({5, 5}), 2),
               "Expected the dimension passed to dynamic_dim to be in the range [0:1]");
  EXPECT_ERROR(dynamic_dim(4, 0), "Expected tensor as input to dynamic_dim");
}

struct SixRows : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& c) {
    if (x.size(0) <= 6) return {x + 1, c + 2};
    return {x - 1, c - 2};
  }
  WEFT_ARGS(x, c)
};

TEST(TestExport, test_non_strict_dynamic_shapes_suggested_fixes) {
  for_each_variant([](const Exporter& exports) {
    const Dim dim("dim", {.min = 3});
    const std::string message = message_of([&] {
      exports(SixRows(), {randn({5}), randn({4})},
              {.dynamic_shapes = DynamicShapes::by_position({{{0, dim}}, {}})});
    });
    EXPECT_TRUE(has_in_order(message, {"Constraints violated (dim)!", "Not all values of dim",
                                       "satisfy the generated guard", "Suggested fixes:",
                                       "dim = Dim('dim', min=3, max=6)"}));
    EXPECT_THAT(message, HasSubstr("auto dim = Dim(\"dim\", {.min = 3, .max = 6});"));
  });
}

struct Unviewed : nn::Module {
  Tensor forward(const Tensor& x) { return x.view({x.size(0) - 1, -1}); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_mod_constraints) {
  for_each_variant([](const Exporter& exports) {
    const Dim dim0("dim0_x", {.min = 3}), dim1("dim1_x", {.max = 8000});
    const std::string message = message_of([&] {
      exports(Unviewed(), {randn({3, 4})}, {.dynamic_shapes = {{"x", ShapeSpec::each({dim0, dim1})}}});
    });
    EXPECT_TRUE(has_in_order(message, {"Specializations unexpectedly required", "\n",
                                       "[0] must be specialized to 3", "guards", "too complex",
                                       "Suggested fixes:", "dim0_x = 3", "dim1_x = 2*_dim1_x"}));
    const Dim half("_dim1_x", {.max = 4000});
    GraphModule module = exports(Unviewed(), {randn({3, 4})},
                                 {.dynamic_shapes = {{"x", ShapeSpec::each({std::nullopt, 2 * half})}}})
                             .module();
    EXPECT_TRUE(has_in_order(message_of([&] { module.call({randn({3, 5})}); }),
                             {"Expected", "shape[1] = 5 to be of the form 2*s1, where s1 is an integer"}));
  });
}

struct ByThree : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y, const Tensor& z) {
    if (x.size(0) >= 5 && x.size(0) <= 36 && y.size(0) % 3 == 0) return x + slice(y, 0, 1) + slice(z, 0, 3);
    return x;
  }
  WEFT_ARGS(x, y, z)
};

TEST(TestExport, test_suggested_fixes_new_roots) {
  for_each_variant([](const Exporter& exports) {
    const auto [dx, dy, dz] = dims("dx", "dy", "dz");
    const ValueList args = {randn({11}), randn({12}), randn({14})};
    auto run = [&](const Dim& x, const Dim& y, const Dim& z) {
      return exports(ByThree(), args, {.dynamic_shapes = {{"x", {{0, x}}}, {"y", {{0, y}}}, {"z", {{0, z}}}}});
    };
    EXPECT_TRUE(has_in_order(message_of([&, dx = dx, dy = dy, dz = dz] { run(dx, dy, dz); }),
                             {"Constraints violated", "!", "Suggested fixes", "_dx = Dim('_dx', max=12)",
                              "dx = 3*_dx - 1", "dy = 3*_dx", "dz = 3*_dx + 2"}));
    const Dim third("_dx", {.min = 2, .max = 12});
    run(3 * third - 1, 3 * third, 3 * third + 2);
  });
}

struct TwoProducts : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& w, const Tensor& x, const Tensor& y, const Tensor& z) {
    return {w.reshape({-1}) + x, y + z};
  }
  WEFT_ARGS(w, x, y, z)
};

TEST(TestExport, test_disable_forced_specializations_errors) {
  for_each_variant([](const Exporter& exports) {
    const auto [dw0, dw1, dx0, dy, dz] = dims("dw0", "dw1", "dx0", "dy", "dz");
    ExportOptions options{.dynamic_shapes = {{"w", {{0, dw0}, {1, dw1}}},
                                             {"x", {{0, dx0}}},
                                             {"y", {{0, dy}}},
                                             {"z", {{0, dz}}}}};
    const ValueList args = {randn({3, 4}), randn({12}), randn({4}), randn({4})};
    EXPECT_TRUE(has_in_order(message_of([&] { exports(TwoProducts(), args, options); }),
                             {"Specializations unexpectedly required", "Suggested fixes:", "dw0 = 3", "dw1 = 4",
                              "dx0 = 12", "dz = dy"}));
    options.config = ExportConfig{.allow_complex_guards_as_runtime_asserts = true,
                                  .disable_forced_specializations = true};
    EXPECT_TRUE(has_in_order(message_of([&] { exports(TwoProducts(), args, options); }),
                             {"Constraints violated", "Suggested fixes:", "dz = dy"}));
  });
}

}  // namespace
}  // namespace weft
