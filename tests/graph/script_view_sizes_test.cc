// Sizes and numbers in the script view, as PyTorch 2.13 prints them for the same programs.
#include <gtest/gtest.h>

#include "graph/support/hand_written.h"
#include "graph/support/script_text.h"
#include "weft/core/from_data.h"
#include "weft/graph/script_view.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_script;
using testing::HandWritten;

using testing::square;

// --- sizes -----------------------------------------------------------------------------------------------

TEST(ScriptSizes, AreTensorsUntilSomebodyWantsNumbers) {
  HandWritten f;
  Value x = f.input("x", square());
  Value rows = f.size(x, 0);
  expect_script(f.returns(f.call("aten::view", {x, Value::list({rows, -1})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = aten::Int(%3)
  %5 : int = prim::Constant[value=-1]()
  %6 : int[] = prim::ListConstruct(%4, %5)
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::view(%x, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.view(x, [int(_0), -1])
)");
}

TEST(ScriptSizes, Products) {
  HandWritten f;
  Value x = f.input("x", square());
  Value rows = f.size(x, 0), columns = f.size(x, 1);
  Value count = f.call("operator.mul", {rows, columns});
  expect_script(f.returns(f.call("aten::view", {x, Value::list({count})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=1]()
  %5 : int = aten::size(%x, %4)
  %6 : Long(device=cpu) = prim::NumToTensor(%5)
  %7 : Long(requires_grad=0, device=cpu) = aten::mul(%3, %6)
  %8 : int = aten::Int(%7)
  %9 : int[] = prim::ListConstruct(%8)
  %10 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::view(%x, %9)
  return (%10)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = ops.prim.NumToTensor(torch.size(x, 1))
  _2 = torch.view(x, [int(torch.mul(_0, _1))])
  return _2
)");
}

TEST(ScriptSizes, EveryUseAsks) {
  HandWritten f;
  Value x = f.input("x", square());
  Value n = f.named("n", f.call("operator.mul", {f.size(x, 0), 2}));
  Kwargs where = {{"device", kCpu}, {"pin_memory", false}};
  Value zeros = f.call("aten::zeros", {Value::list({n})}, where);
  Value ones = f.call("aten::ones", {Value::list({n})}, where);
  Value sum = f.call("aten::add.Tensor", {zeros, f.call("aten::view", {ones, Value::list({n})})});
  expect_script(f.returns(f.call("aten::add.Tensor", {sum, n})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %n : Long(requires_grad=0, device=cpu) = aten::mul(%3, %4)
  %6 : int = aten::Int(%n)
  %7 : int = aten::Int(%n)
  %8 : int = aten::Int(%n)
  %9 : int[] = prim::ListConstruct(%8)
  %10 : NoneType = prim::Constant()
  %11 : NoneType = prim::Constant()
  %12 : Device = prim::Constant[value="cpu"]()
  %13 : bool = prim::Constant[value=0]()
  %14 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::zeros(%9, %10, %11, %12, %13)
  %15 : int[] = prim::ListConstruct(%7)
  %16 : NoneType = prim::Constant()
  %17 : NoneType = prim::Constant()
  %18 : Device = prim::Constant[value="cpu"]()
  %19 : bool = prim::Constant[value=0]()
  %20 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::ones(%15, %16, %17, %18, %19)
  %21 : int[] = prim::ListConstruct(%6)
  %22 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::view(%20, %21)
  %23 : int = prim::Constant[value=1]()
  %24 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::add(%14, %22, %23)
  %25 : int = prim::Constant[value=1]()
  %26 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::add(%24, %n, %25)
  return (%26)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  n = torch.mul(_0, CONSTANTS.c0)
  _1 = int(n)
  _2 = int(n)
  _3 = torch.zeros([int(n)], dtype=None, layout=None, device=torch.device("cpu"), pin_memory=False)
  _4 = torch.ones([_2], dtype=None, layout=None, device=torch.device("cpu"), pin_memory=False)
  _5 = torch.add(torch.add(_3, torch.view(_4, [_1])), n)
  return _5
)");
}

TEST(ScriptSizes, AsResults) {
  HandWritten f;
  Value x = f.input("x", square());
  Value rows = f.size(x, 0);
  Value product = f.call("operator.mul", {f.size(x, 1), 3});
  expect_script(f.returns(Value::tuple({rows, product})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=1]()
  %5 : int = aten::size(%x, %4)
  %6 : Long(device=cpu) = prim::NumToTensor(%5)
  %7 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %8 : Long(requires_grad=0, device=cpu) = aten::mul(%6, %7)
  %9 : (Long(device=cpu), Long(requires_grad=0, device=cpu)) = prim::TupleConstruct(%3, %8)
  return (%9)
)",
                R"(
def forward(x: Tensor) -> Tuple[Tensor, Tensor]:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = ops.prim.NumToTensor(torch.size(x, 1))
  return (_0, torch.mul(_1, CONSTANTS.c0))
)");
}

TEST(ScriptSizes, AsNumbersOfAnyKind) {
  HandWritten f;
  Value x = f.input("x", square());
  Kwargs where = {{"device", kCpu}, {"pin_memory", false}};
  expect_script(f.returns(f.call("aten::arange", {f.size(x, 0)}, where)), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Scalar = aten::ScalarImplicit(%3)
  %5 : NoneType = prim::Constant()
  %6 : NoneType = prim::Constant()
  %7 : Device = prim::Constant[value="cpu"]()
  %8 : bool = prim::Constant[value=0]()
  %9 : Long(2, strides=[1], requires_grad=0, device=cpu) = aten::arange(%4, %5, %6, %7, %8)
  return (%9)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.arange(annotate(number, _0), dtype=None, layout=None, device=torch.device("cpu"), pin_memory=False)
  return _1
)");
}

TEST(ScriptSizes, NumbersFromTensors) {
  HandWritten f;
  Value x = f.input("x", square()), k = f.input("k", from_data(std::vector<int64_t>{1}).view(SymIntSpan()));
  Value number = f.call("aten::item", {k});
  Value sum = f.call("aten::add.Tensor", {x, 1});
  Value first = f.call("aten::select.int", {sum, 0, number});
  Value product = f.call("aten::mul.Tensor", {x, 2});
  Value second = f.call("aten::select.int", {product, 0, f.call("aten::item", {k})});
  expect_script(f.returns(f.call("aten::add.Tensor", {first, second})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %k : Long(requires_grad=0, device=cpu)):
  %2 : int = aten::Int(%k)
  %3 : int = aten::Int(%k)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %5 : int = prim::Constant[value=1]()
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %4, %5)
  %7 : int = prim::Constant[value=0]()
  %8 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::select(%6, %7, %3)
  %9 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %10 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %9)
  %11 : int = prim::Constant[value=0]()
  %12 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::select(%10, %11, %2)
  %13 : int = prim::Constant[value=1]()
  %14 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::add(%8, %12, %13)
  return (%14)
)",
                R"(
def forward(x: Tensor,
    k: Tensor) -> Tensor:
  _0 = int(k)
  _1 = int(k)
  _2 = torch.select(torch.add(x, CONSTANTS.c0), 0, _1)
  _3 = torch.select(torch.mul(x, CONSTANTS.c1), 0, _0)
  return torch.add(_2, _3)
)");
}

// x + f(x.size(0))
GraphModule plus(std::string_view function, bool number_first, std::optional<int64_t> number) {
  HandWritten f;
  Value x = f.input("x", square());
  Value size = f.size(x, 0);
  ValueList args = {size};
  if (number) args.insert(number_first ? args.begin() : args.end(), *number);
  return f.returns(f.call("aten::add.Tensor", {x, f.call(function, args)}));
}

TEST(ScriptSizes, ArithmeticWithNumbers) {
  expect_script(plus("operator.sub", false, 1), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %5 : int = prim::Constant[value=1]()
  %6 : Long(requires_grad=0, device=cpu) = aten::sub(%3, %4, %5)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.sub(_0, CONSTANTS.c0))
  return _1
)");
  expect_script(plus("operator.floordiv", false, 2), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %5 : Long(requires_grad=0, device=cpu) = aten::floor_divide(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.floor_divide(_0, CONSTANTS.c0))
  return _1
)");
  expect_script(plus("operator.mod", false, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=3]()
  %5 : Long(requires_grad=0, device=cpu) = aten::remainder(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.remainder(_0, 3))
)");
  expect_script(plus("operator.pow", false, 2), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=2]()
  %5 : Long(requires_grad=0, device=cpu) = aten::pow(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.pow(_0, 2))
)");
  expect_script(plus("operator.truediv", false, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %5 : Float(requires_grad=0, device=cpu) = aten::div(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.div(_0, CONSTANTS.c0))
  return _1
)");
  expect_script(plus("operator.neg", false, std::nullopt), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = aten::neg(%3)
  %5 : int = prim::Constant[value=1]()
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %4, %5)
  return (%6)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.neg(_0))
)");
  expect_script(plus("operator.lt", false, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=3]()
  %5 : Bool(requires_grad=0, device=cpu) = aten::lt(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.lt(_0, 3))
)");
}

TEST(ScriptSizes, ArithmeticOfNumbersWithSizes) {
  expect_script(plus("operator.add", true, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %5 : int = prim::Constant[value=1]()
  %6 : Long(requires_grad=0, device=cpu) = aten::add(%3, %4, %5)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.add(_0, CONSTANTS.c0))
  return _1
)");
  expect_script(plus("operator.sub", true, 2), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=2]()
  %5 : int = prim::Constant[value=1]()
  %6 : Long(requires_grad=0, device=cpu) = aten::rsub(%3, %4, %5)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.rsub(_0, 2))
)");
  expect_script(plus("operator.mul", true, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %5 : Long(requires_grad=0, device=cpu) = aten::mul(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.mul(_0, CONSTANTS.c0))
  return _1
)");
  expect_script(plus("operator.truediv", true, 1), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Float(requires_grad=0, device=cpu) = aten::reciprocal(%3)
  %5 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %6 : Float(requires_grad=0, device=cpu) = aten::mul(%4, %5)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.mul(torch.reciprocal(_0), CONSTANTS.c0)
  return torch.add(x, _1)
)");
  expect_script(plus("operator.floordiv", true, 10), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={10}]()
  %5 : Long(requires_grad=0, device=cpu) = aten::floor_divide(%4, %3)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  _1 = torch.add(x, torch.floor_divide(CONSTANTS.c0, _0))
  return _1
)");
  expect_script(plus("operator.mod", true, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=3]()
  %5 : Long(requires_grad=0, device=cpu) = aten::remainder(%4, %3)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.remainder(3, _0))
)");
  expect_script(plus("operator.pow", true, 2), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=2]()
  %5 : Long(requires_grad=0, device=cpu) = aten::pow(%4, %3)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.pow(2, _0))
)");
  expect_script(plus("operator.lt", true, 3), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%x, %1)
  %3 : Long(device=cpu) = prim::NumToTensor(%2)
  %4 : int = prim::Constant[value=3]()
  %5 : Bool(requires_grad=0, device=cpu) = aten::gt(%3, %4)
  %6 : int = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = ops.prim.NumToTensor(torch.size(x, 0))
  return torch.add(x, torch.gt(_0, 3))
)");
}

}  // namespace
}  // namespace weft
