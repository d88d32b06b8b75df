// What is asserted of data in a region of another grad mode, and again after decompositions.
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "weft/autograd/autograd.h"
#include "weft/core/from_data.h"
#include "weft/graph/parse.h"
#include "weft/ops/define.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::Exporter;
using testing::for_each_variant;

// Of PyTorch's test library: whatever it asks is known.
Tensor ones_whatever(const Scalar& x) {
  const SymInt value = x.to_sym_int();
  if (value > 2) return ones({4, 4});
  if (value < 6) return ones({4, 4});
  return ones({4, 4});
}
const Operator& foo_unbacked() {
  static const Operator& op =
      define_operator("testlib::foo_unbacked(Scalar x) -> Tensor", {.composite = ones_whatever});
  return op;
}

struct AssertsWithoutGrad : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor y_sum = y.sin().sum();
    Tensor unbacked_shape;
    {
      const NoGrad no_grad;
      const SymInt a = x.item().to_sym_int();
      check_size_like(a);
      check(a > 2);
      check(a < 6);
      unbacked_shape = call(foo_unbacked(), {a}).to_tensor();
    }
    const Tensor with_sum = y + y_sum;  // the sum below comes after it
    return with_sum + unbacked_shape.sum();
  }
  WEFT_ARGS(x, y)
};

constexpr const char* kRegion = R"(
def forward(self, x):
    item = torch.ops.aten.item.default(x);  x = None
    sym_constrain_range_for_size_default = torch.ops.aten.sym_constrain_range_for_size.default(item)
    sym_constrain_range_default = torch.ops.aten.sym_constrain_range.default(item, min = 3, max = 5)
    ge = item >= 0
    _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'");  ge = None
    gt = item > 2
    _assert_scalar_default_1 = torch.ops.aten._assert_scalar.default(gt, "Runtime assertion failed for expression 2 < u0 on node 'gt'");  gt = None
    lt = item < 6
    _assert_scalar_default_2 = torch.ops.aten._assert_scalar.default(lt, "Runtime assertion failed for expression u0 < 6 on node 'lt'");  lt = None
    foo_unbacked = torch.ops.testlib.foo_unbacked.default(item);  item = None
    return foo_unbacked
)";

constexpr const char* kDecomposed = R"(
def forward(self, x, y):
    sin = torch.ops.aten.sin.default(y)
    sum_1 = torch.ops.aten.sum.dim_IntList(sin, []);  sin = None
    _local_scalar_dense = torch.ops.aten._local_scalar_dense.default(x);  x = None
    sym_constrain_range_for_size = torch.ops.aten.sym_constrain_range_for_size.default(_local_scalar_dense)
    sym_constrain_range = torch.ops.aten.sym_constrain_range.default(_local_scalar_dense, min = 3, max = 5)
    ge = _local_scalar_dense >= 0
    _assert_scalar = torch.ops.aten._assert_scalar.default(ge, "Runtime assertion failed for expression 0 <= u0 on node 'ge'");  ge = None
    gt = _local_scalar_dense > 2
    _assert_scalar_1 = torch.ops.aten._assert_scalar.default(gt, "Runtime assertion failed for expression 2 < u0 on node 'gt'");  gt = None
    lt = _local_scalar_dense < 6;  _local_scalar_dense = None
    _assert_scalar_2 = torch.ops.aten._assert_scalar.default(lt, "Runtime assertion failed for expression u0 < 6 on node 'lt'");  lt = None
    full = torch.ops.aten.full.default([4, 4], 1, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
    add = torch.ops.aten.add.Tensor(y, sum_1);  y = sum_1 = None
    sum_2 = torch.ops.aten.sum.dim_IntList(full, []);  full = None
    add_1 = torch.ops.aten.add.Tensor(add, sum_2);  add = sum_2 = None
    return (add_1,)
)";

// Which names are freed, and where, is up to the printer: the calls are what counts.
std::string printed_again(const char* code) { return testing::stripped_code(GraphModule(parse_code(code))); }

TEST(TestExport, test_unbacked_deferred_runtime_retrace) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {from_data<int64_t>({4}, {}), randn({5, 5})};
    const ExportedProgram program = exports(AssertsWithoutGrad(), args);
    testing::expect_as_eager(program, AssertsWithoutGrad(), args);
    if (exports.is_plain()) {
      const GraphModule region = *graph_module_in(program.graph_module().find("submod_1"));
      EXPECT_EQ(testing::stripped_code(region), printed_again(kRegion));
      EXPECT_EQ(testing::stripped_code(program.run_decompositions().graph_module()),
                printed_again(kDecomposed));
    }
    EXPECT_ERROR(program.module().call({from_data<int64_t>({6}, {}), args[1]}), "between [3, 5]");
  });
}

}  // namespace
}  // namespace weft
