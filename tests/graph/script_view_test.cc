// The script view of functions: graph text and code as PyTorch 2.13 prints them for the same programs.
#include "weft/graph/script_view.h"

#include <gtest/gtest.h>

#include "graph/support/hand_written.h"
#include "graph/support/script_text.h"
#include "support/expect_error.h"
#include "weft/capture/make_graph.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_script;
using testing::HandWritten;
using testing::script_lines;

using testing::square;
Tensor indices() { return from_data(std::vector<int64_t>{0, 1}); }

// What f does with these tensors, above autograd.
template <typename F, typename... A>
GraphModule traced(const std::string& names, F f, const A&... args) {
  GraphModule module =
      make_graph(f, {.pre_dispatch = true, .arg_names = names, .keep_dead_code = true})(args...);
  // The inputs by the names of the arguments: make_graph numbers them.
  for (Node* input : module.graph().placeholders()) {
    std::string name = input->name();
    input->set_target(name.substr(0, name.rfind('_')));
  }
  return module;
}

// --- operators and constants -----------------------------------------------------------------------------

TEST(ScriptView, Arguments) {
  auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
  expect_script(traced("x, y", f, square(), square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %y, %2)
  return (%3)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tensor:
  return torch.add(x, y)
)");
}

TEST(ScriptView, NumbersForTensorsAreTensors) {
  auto f = [](const Tensor& x) { return ((x + 2) - 4) * 6 / 8; };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %1, %2)
  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={4}]()
  %5 : int = prim::Constant[value=1]()
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sub(%3, %4, %5)
  %7 : Long(requires_grad=0, device=cpu) = prim::Constant[value={6}]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%6, %7)
  %9 : Long(requires_grad=0, device=cpu) = prim::Constant[value={8}]()
  %10 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::div(%8, %9)
  return (%10)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.sub(torch.add(x, CONSTANTS.c0), CONSTANTS.c1)
  _1 = torch.div(torch.mul(_0, CONSTANTS.c2), CONSTANTS.c3)
  return _1
)");
}

TEST(ScriptView, NumbersOfAllKinds) {
  auto f = [](const Tensor& x) { return x * 2.5 + 1e-10 - std::numeric_limits<double>::infinity() + true; };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Double(requires_grad=0, device=cpu) = prim::Constant[value={2.5}]()
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %1)
  %3 : Double(requires_grad=0, device=cpu) = prim::Constant[value={1e-10}]()
  %4 : int = prim::Constant[value=1]()
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%2, %3, %4)
  %6 : Double(requires_grad=0, device=cpu) = prim::Constant[value={inf}]()
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sub(%5, %6, %7)
  %9 : Bool(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %10 : int = prim::Constant[value=1]()
  %11 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%8, %9, %10)
  return (%11)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.add(torch.mul(x, CONSTANTS.c0), CONSTANTS.c1)
  _1 = torch.add(torch.sub(_0, CONSTANTS.c2), CONSTANTS.c3)
  return _1
)");
}

TEST(ScriptView, ComplexNumbers) {
  auto f = [](const Tensor& x) { return x * Scalar(Complex<double>(1, 2)); };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : ComplexDouble(requires_grad=0, device=cpu) = prim::Constant[value={(1,2)}]()
  %2 : ComplexFloat(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %1)
  return (%2)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  return torch.mul(x, CONSTANTS.c0)
)");
}

TEST(ScriptView, NumbersForNumbersStayNumbers) {
  auto f = [](const Tensor& x) { return x.clamp(1e20, 0.1).clamp(-1, 123456789.).clamp({}, 1. / 3); };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : float = prim::Constant[value=1e+20]()
  %2 : float = prim::Constant[value=0.10000000000000001]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::clamp(%x, %1, %2)
  %4 : int = prim::Constant[value=-1]()
  %5 : float = prim::Constant[value=123456789.]()
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::clamp(%3, %4, %5)
  %7 : NoneType = prim::Constant()
  %8 : float = prim::Constant[value=0.33333333333333331]()
  %9 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::clamp(%6, %7, %8)
  return (%9)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.clamp(x, 1e+20, 0.10000000000000001)
  _1 = torch.clamp(torch.clamp(_0, -1, 123456789.), None, 0.33333333333333331)
  return _1
)");
}

TEST(ScriptView, SeveralResults) {
  auto f = [](const Tensor& x) { return max(x, 1, false); };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=1]()
  %2 : bool = prim::Constant[value=0]()
  %3 : Float(2, strides=[1], requires_grad=0, device=cpu), %4 : Long(2, strides=[1], requires_grad=0, device=cpu) = aten::max(%x, %1, %2)
  %5 : (Float(2, strides=[1], requires_grad=0, device=cpu), Long(2, strides=[1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%3, %4)
  return (%5)
)",
                R"(
def forward(x: Tensor) -> Tuple[Tensor, Tensor]:
  _0, _1 = torch.max(x, 1)
  return (_0, _1)
)");
}

TEST(ScriptView, ResultsThatAreLists) {
  auto f = [](const Tensor& x) { return split(x, 1)[1]; };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=0]()
  %3 : Tensor[] = aten::split(%x, %1, %2)
  %4 : Float(1, 2, strides=[2, 1], requires_grad=0, device=cpu), %5 : Float(1, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::ListUnpack(%3)
  return (%5)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0, _1, = torch.split(x, 1)
  return _1
)");
}

TEST(ScriptView, ListsOfTensors) {
  auto f = [](const Tensor& x, const Tensor& y) { return cat({x, y}, 1); };
  expect_script(traced("x, y", f, square(), square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : Tensor[] = prim::ListConstruct(%x, %y)
  %3 : int = prim::Constant[value=1]()
  %4 : Float(2, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::cat(%2, %3)
  return (%4)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tensor:
  return torch.cat([x, y], 1)
)");
}

TEST(ScriptView, ListsWithHoles) {
  auto f = [](const Tensor& x, const Tensor& i) { return index(x, {Tensor(), i}); };
  expect_script(traced("x, i", f, square(), indices()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %i : Long(2, strides=[1], requires_grad=0, device=cpu)):
  %2 : NoneType = prim::Constant()
  %3 : Tensor?[] = prim::ListConstruct(%2, %i)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::index(%x, %3)
  return (%4)
)",
                R"(
def forward(x: Tensor,
    i: Tensor) -> Tensor:
  _0 = annotate(List[Optional[Tensor]], [None, i])
  return torch.index(x, _0)
)");
}

TEST(ScriptView, WritesInPlace) {
  auto f = [](const Tensor& x, const Tensor& i, const Tensor& y) { return x.clone().index_put_({i}, y); };
  expect_script(traced("x, i, y", f, square(), indices(), square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %i : Long(2, strides=[1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %3 : NoneType = prim::Constant()
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::clone(%x, %3)
  %5 : Tensor?[] = prim::ListConstruct(%i)
  %6 : bool = prim::Constant[value=0]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::index_put_(%4, %5, %y, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor,
    i: Tensor,
    y: Tensor) -> Tensor:
  _0 = torch.index_put_(torch.clone(x), annotate(List[Optional[Tensor]], [i]), y)
  return _0
)");
  auto twice = [](const Tensor& x) { return x.clone().add_(2).add_(3); };
  expect_script(traced("x", twice, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : NoneType = prim::Constant()
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::clone(%x, %1)
  %3 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %4 : int = prim::Constant[value=1]()
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add_(%2, %3, %4)
  %6 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add_(%5, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.add_(torch.clone(x), CONSTANTS.c0)
  return torch.add_(_0, CONSTANTS.c1)
)");
}

TEST(ScriptView, TensorsFromOutsideAreConstants) {
  Tensor table = from_data(std::vector<float>{1, 2, 3, 4}).view({2, 2}), three = full({}, 3.0);
  auto f = [=](const Tensor& x) { return x * table + three; };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::Constant[value= 1  2  3  4 [ CPUFloatType{2,2} ]]()
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %1)
  %3 : Float(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %4 : int = prim::Constant[value=1]()
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%2, %3, %4)
  return (%5)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.add(torch.mul(x, CONSTANTS.c0), CONSTANTS.c1)
  return _0
)");
}

TEST(ScriptView, TensorsOfManyElementsAreNotWrittenOut) {
  Tensor small = arange(10), large = arange(11);
  auto text = [](const Tensor& constant) {
    GraphModule module = traced("x", [=](const Tensor& x) { return x + constant; }, ones({1}));
    return script_lines(module)[1];
  };
  EXPECT_EQ(text(small),
            "  %1 : Long(10, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 0  1  2  3  4 "
            " 5  6  "
            "7  8  9 [ CPULongType{10} ]]()");
  EXPECT_EQ(text(large),
            "  %1 : Long(11, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()");
  // Without the module that owns it nobody knows the values.
  GraphModule module = traced("x", [=](const Tensor& x) { return x + small; }, ones({1}));
  EXPECT_EQ(script_lines(script_text(module.graph()))[1],
            "  %1 : Long(10, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()");
}

TEST(ScriptView, Factories) {
  expect_script(traced(
                    "x", [](const Tensor& x) { return x + ones({2, 2}); }, square()),
                R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=2]()
  %3 : int[] = prim::ListConstruct(%1, %2)
  %4 : NoneType = prim::Constant()
  %5 : NoneType = prim::Constant()
  %6 : Device = prim::Constant[value="cpu"]()
  %7 : bool = prim::Constant[value=0]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::ones(%3, %4, %5, %6, %7)
  %9 : int = prim::Constant[value=1]()
  %10 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %8, %9)
  return (%10)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.ones([2, 2], dtype=None, layout=None, device=torch.device("cpu"), pin_memory=False)
  return torch.add(x, _0)
)");
  expect_script(traced(
                    "x", [](const Tensor& x) { return x + ones({2, 2}, kInt32); }, square()),
                R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=2]()
  %3 : int[] = prim::ListConstruct(%1, %2)
  %4 : int = prim::Constant[value=3]()
  %5 : NoneType = prim::Constant()
  %6 : Device = prim::Constant[value="cpu"]()
  %7 : bool = prim::Constant[value=0]()
  %8 : Int(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::ones(%3, %4, %5, %6, %7)
  %9 : int = prim::Constant[value=1]()
  %10 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %8, %9)
  return (%10)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.ones([2, 2], dtype=3, layout=None, device=torch.device("cpu"), pin_memory=False)
  return torch.add(x, _0)
)");
  HandWritten out;
  Value x = out.input("x", square());
  expect_script(out.returns(out.call("aten::ones.out", {Value::list({2, 2})}, {{"out", x}})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=2]()
  %3 : int[] = prim::ListConstruct(%1, %2)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::ones(%3, %x)
  return (%4)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  return torch.ones([2, 2], out=x)
)");
}

TEST(ScriptView, ListsOfNumbersAndDefaults) {
  auto f = [](const Tensor& x) { return max_pool2d(x, {2, 2}) + 2; };
  expect_script(traced("x", f, ones({1, 1, 4, 4})), R"(
graph(%x : Float(1, 1, 4, 4, strides=[16, 16, 4, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=2]()
  %3 : int[] = prim::ListConstruct(%1, %2)
  %4 : int[] = prim::ListConstruct()
  %5 : int = prim::Constant[value=0]()
  %6 : int = prim::Constant[value=0]()
  %7 : int[] = prim::ListConstruct(%5, %6)
  %8 : int = prim::Constant[value=1]()
  %9 : int = prim::Constant[value=1]()
  %10 : int[] = prim::ListConstruct(%8, %9)
  %11 : bool = prim::Constant[value=0]()
  %12 : Float(1, 1, 2, 2, strides=[4, 4, 2, 1], requires_grad=0, device=cpu) = aten::max_pool2d(%x, %3, %4, %7, %10, %11)
  %13 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %14 : int = prim::Constant[value=1]()
  %15 : Float(1, 1, 2, 2, strides=[4, 4, 2, 1], requires_grad=0, device=cpu) = aten::add(%12, %13, %14)
  return (%15)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.max_pool2d(x, [2, 2], annotate(List[int], []), [0, 0], [1, 1])
  return torch.add(_0, CONSTANTS.c0)
)");
  auto norm = [](const Tensor& x) { return layer_norm(x, {2}); };
  expect_script(traced("x", norm, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int[] = prim::ListConstruct(%1)
  %3 : NoneType = prim::Constant()
  %4 : NoneType = prim::Constant()
  %5 : float = prim::Constant[value=1.0000000000000001e-05]()
  %6 : bool = prim::Constant[value=1]()
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::layer_norm(%x, %2, %3, %4, %5, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  return torch.layer_norm(x, [2])
)");
}

TEST(ScriptView, TypesDevicesAndTexts) {
  expect_script(traced(
                    "x", [](const Tensor& x) { return x.to(kInt64); }, square()),
                R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=4]()
  %2 : bool = prim::Constant[value=0]()
  %3 : bool = prim::Constant[value=0]()
  %4 : NoneType = prim::Constant()
  %5 : Long(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::to(%x, %1, %2, %3, %4)
  return (%5)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  return torch.to(x, 4)
)");
  HandWritten cpu;
  Value x = cpu.input("x", square());
  Kwargs where = {{"dtype", kFloat32}, {"layout", Layout::kStrided}, {"device", kCpu}};
  expect_script(cpu.returns(cpu.call("aten::to.dtype_layout", {x}, where)), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=6]()
  %2 : int = prim::Constant[value=0]()
  %3 : Device = prim::Constant[value="cpu"]()
  %4 : NoneType = prim::Constant()
  %5 : bool = prim::Constant[value=0]()
  %6 : bool = prim::Constant[value=0]()
  %7 : NoneType = prim::Constant()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::to(%x, %1, %2, %3, %4, %5, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.to(x, dtype=6, layout=0, device=torch.device("cpu"))
  return _0
)");
  HandWritten rounded;
  x = rounded.input("x", square());
  Value quotient = rounded.call("aten::div.Tensor_mode", {x, 2}, {{"rounding_mode", "floor"}});
  expect_script(rounded.returns(quotient), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %2 : str = prim::Constant[value="floor"]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::div(%x, %1, %2)
  return (%3)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.div(x, CONSTANTS.c0, rounding_mode="floor")
  return _0
)");
}

// --- code: what is written where it is used --------------------------------------------------------------

TEST(ScriptView, LinesThatGetLongAreBroken) {
  auto f = [](const Tensor& x) { return sigmoid(tanh(relu(sin(cos(exp(neg(x))))))); };
  expect_script(traced("x", f, square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::neg(%x)
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::exp(%1)
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::cos(%2)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sin(%3)
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::relu(%4)
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::tanh(%5)
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sigmoid(%6)
  return (%7)
)",
                R"(
def forward(x: Tensor) -> Tensor:
  _0 = torch.sin(torch.cos(torch.exp(torch.neg(x))))
  _1 = torch.sigmoid(torch.tanh(torch.relu(_0)))
  return _1
)");
}

TEST(ScriptView, OnlyWhatIsComputedLastIsWrittenInPlace) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor a = sigmoid(x).view({-1, 2});
    Tensor b = tanh(y).transpose(0, 1);
    return cat({a, b, x * y + x - y}, 0).sum();
  };
  expect_script(traced("x, y", f, square(), square()), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sigmoid(%x)
  %3 : int = prim::Constant[value=-1]()
  %4 : int = prim::Constant[value=2]()
  %5 : int[] = prim::ListConstruct(%3, %4)
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::view(%2, %5)
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::tanh(%y)
  %8 : int = prim::Constant[value=0]()
  %9 : int = prim::Constant[value=1]()
  %10 : Float(2, 2, strides=[1, 2], requires_grad=0, device=cpu) = aten::transpose(%7, %8, %9)
  %11 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %y)
  %12 : int = prim::Constant[value=1]()
  %13 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%11, %x, %12)
  %14 : int = prim::Constant[value=1]()
  %15 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::sub(%13, %y, %14)
  %16 : Tensor[] = prim::ListConstruct(%6, %10, %15)
  %17 : int = prim::Constant[value=0]()
  %18 : Float(6, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::cat(%16, %17)
  %19 : NoneType = prim::Constant()
  %20 : Float(requires_grad=0, device=cpu) = aten::sum(%18, %19)
  return (%20)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tensor:
  _0 = torch.view(torch.sigmoid(x), [-1, 2])
  _1 = torch.transpose(torch.tanh(y), 0, 1)
  _2 = torch.sub(torch.add(torch.mul(x, y), x), y)
  return torch.sum(torch.cat([_0, _1, _2]))
)");
}

// --- containers ------------------------------------------------------------------------------------------

TEST(ScriptView, Tuples) {
  HandWritten f;
  Value x = f.input("x", square()), ab = f.input("ab", Value::tuple({square(), square()}));
  Value a = f.item(ab, 0), b = f.item(ab, 1);
  Value left = f.call("aten::mul.Tensor", {x, b}), right = f.call("aten::mul.Tensor", {x, a});
  expect_script(f.returns(Value::tuple({x, Value::tuple({left, right})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %ab : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu))):
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%ab)
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %3)
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %2)
  %6 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%4, %5)
  %7 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu))) = prim::TupleConstruct(%x, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor,
    ab: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
  _0, _1, = ab
  _2 = (x, (torch.mul(x, _1), torch.mul(x, _0)))
  return _2
)");
  HandWritten one;
  x = one.input("x", square());
  expect_script(one.returns(Value::tuple({one.call("aten::add.Tensor", {x, 1})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %1, %2)
  %4 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%3)
  return (%4)
)",
                R"(
def forward(x: Tensor) -> Tuple[Tensor]:
  return (torch.add(x, CONSTANTS.c0),)
)");
  HandWritten empty;
  x = empty.input("x", square());
  expect_script(empty.returns(Value::tuple({x, Value::tuple({})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : () = prim::TupleConstruct()
  %2 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), ()) = prim::TupleConstruct(%x, %1)
  return (%2)
)",
                R"(
def forward(x: Tensor) -> Tuple[Tensor, Tuple[()]]:
  return (x, ())
)");
}

TEST(ScriptView, Lists) {
  HandWritten f;
  Value l = f.input("l", Value::list({square(), square()}));
  Value a = f.item(l, 0), b = f.item(l, -1);
  expect_script(f.returns(Value::list({f.call("aten::add.Tensor", {a, b}), b})), R"(
graph(%l : Tensor[]):
  %1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::ListUnpack(%l)
  %3 : int = prim::Constant[value=1]()
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%1, %2, %3)
  %5 : Tensor[] = prim::ListConstruct(%4, %2)
  return (%5)
)",
                R"(
def forward(l: List[Tensor]) -> List[Tensor]:
  _0, _1, = l
  return [torch.add(_0, _1), _1]
)");
}

TEST(ScriptView, ListsOfTuples) {
  HandWritten f;
  Value pair = Value::tuple({square(), square()});
  Value l = f.input("l", Value::list({pair, pair}));
  Value first = f.item(l, 0), second = f.item(l, 1);
  Value a = f.item(first, 0), b = f.item(second, 1);
  expect_script(f.returns(f.call("aten::add.Tensor", {a, b})), R"(
graph(%l : (Tensor, Tensor)[]):
  %1 : (Tensor, Tensor), %2 : (Tensor, Tensor) = prim::ListUnpack(%l)
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%1)
  %5 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%2)
  %7 : int = prim::Constant[value=1]()
  %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%3, %6, %7)
  return (%8)
)",
                R"(
def forward(l: List[Tuple[Tensor, Tensor]]) -> Tensor:
  _0, _1, = l
  _2, _3, = _0
  _4, _5, = _1
  return torch.add(_2, _5)
)");
}

TEST(ScriptView, DictionariesOfTuples) {
  HandWritten f;
  Value pair = Value::tuple({square(), square()});
  Value d = f.input("d", Dict{{"a", pair}, {"b", pair}});
  // The order of the keys is that of the dictionary, not that of the uses.
  Value second = f.item(f.item(d, "b"), 1);
  Value first = f.item(f.item(d, "a"), 0);
  expect_script(f.returns(f.call("aten::add.Tensor", {first, second})), R"(
graph(%d : Dict(str, (Tensor, Tensor))):
  %1 : str = prim::Constant[value="a"]()
  %2 : (Tensor, Tensor) = aten::__getitem__(%d, %1)
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%2)
  %5 : str = prim::Constant[value="b"]()
  %6 : (Tensor, Tensor) = aten::__getitem__(%d, %5)
  %7 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), %8 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%6)
  %9 : int = prim::Constant[value=1]()
  %10 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%3, %8, %9)
  return (%10)
)",
                R"(
def forward(d: Dict[str, Tuple[Tensor, Tensor]]) -> Tensor:
  _0, _1, = d["a"]
  _2, _3, = d["b"]
  return torch.add(_0, _3)
)");
}

TEST(ScriptView, KeysThatAreNumbers) {
  HandWritten f;
  Value d = f.input("d", Dict{{1, square()}, {2, square()}});
  Value first = f.item(d, 1), second = f.item(d, 2);
  expect_script(f.returns(f.call("aten::add.Tensor", {first, second})), R"(
graph(%d : Dict(int, Tensor)):
  %1 : int = prim::Constant[value=1]()
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::__getitem__(%d, %1)
  %3 : int = prim::Constant[value=2]()
  %4 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::__getitem__(%d, %3)
  %5 : int = prim::Constant[value=1]()
  %6 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%2, %4, %5)
  return (%6)
)",
                R"(
def forward(d: Dict[int, Tensor]) -> Tensor:
  return torch.add(d[1], d[2])
)");
}

TEST(ScriptView, ResultsThatAreDictionaries) {
  HandWritten f;
  Value x = f.input("x", square());
  Value sum = f.call("aten::add.Tensor", {x, 1});
  expect_script(f.returns(Dict{{"a", Value::tuple({x, sum})}, {"b", Value::tuple({x, x})}}), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %1, %2)
  %4 : str = prim::Constant[value="a"]()
  %5 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%x, %3)
  %6 : str = prim::Constant[value="b"]()
  %7 : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%x, %x)
  %8 : Dict(str, (Tensor, Tensor)) = prim::DictConstruct(%4, %5, %6, %7)
  return (%8)
)",
                R"(
def forward(x: Tensor) -> Dict[str, Tuple[Tensor, Tensor]]:
  _0 = {"a": (x, torch.add(x, CONSTANTS.c0)), "b": (x, x)}
  return _0
)");
}

TEST(ScriptView, ContainersThatAreNotTakenApartStayWhole) {
  HandWritten f;
  Value x = f.input("x", square());
  Value ab = f.input("ab", Value::tuple({square(), square()}));
  expect_script(f.returns(Value::tuple({ab, f.call("aten::max.dim", {x, 1})})), R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %ab : (Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu))):
  %2 : int = prim::Constant[value=1]()
  %3 : bool = prim::Constant[value=0]()
  %4 : Float(2, strides=[1], requires_grad=0, device=cpu), %5 : Long(2, strides=[1], requires_grad=0, device=cpu) = aten::max(%x, %2, %3)
  %6 : (Float(2, strides=[1], requires_grad=0, device=cpu), Long(2, strides=[1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%4, %5)
  %7 : ((Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu), Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)), (Float(2, strides=[1], requires_grad=0, device=cpu), Long(2, strides=[1], requires_grad=0, device=cpu))) = prim::TupleConstruct(%ab, %6)
  return (%7)
)",
                R"(
def forward(x: Tensor,
    ab: Tuple[Tensor, Tensor]) -> Tuple[Tuple[Tensor, Tensor], Tuple[Tensor, Tensor]]:
  _0, _1 = torch.max(x, 1)
  return (ab, (_0, _1))
)");
}

// --- functions that stay whole ---------------------------------------------------------------------------

TEST(ScriptView, CustomFunctions) {
  HandWritten f;
  Value x = f.input("x", ones({3, 2}, kFloat64)), y = f.input("y", ones({1, 2}, kFloat64));
  Value both = f.call_whole("^Foo", {x, y}, Value::tuple({f.example(y), f.example(x)}));
  Value first = f.item(both, 0), second = f.item(both, 1);
  expect_script(f.returns(Value::tuple({first, second})), R"(
graph(%x : Double(3, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Double(1, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : (Double(1, 2, strides=[2, 1], requires_grad=0, device=cpu), Double(3, 2, strides=[2, 1], requires_grad=0, device=cpu)) = ^Foo[inplace=0]()(%x, %y)
  %3 : Double(1, 2, strides=[2, 1], requires_grad=0, device=cpu), %4 : Double(3, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::TupleUnpack(%2)
  %5 : (Double(1, 2, strides=[2, 1], requires_grad=0, device=cpu), Double(3, 2, strides=[2, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(%3, %4)
  return (%5)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tuple[Tensor, Tensor]:
  _0, _1, = ^Foo()(x, y)
  return (_0, _1)
)");
  HandWritten g;
  x = g.input("x", square()), y = g.input("y", square());
  GraphModule module = g.returns(g.call_whole("^Scale", {x, Value::list({3, 2.5}), "hi", y}, square(), 1));
  expect_script(module, R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = ^Scale[inplace=1]([3, 2.5], hi)(%x, %y)
  return (%2)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tensor:
  return ^Scale([3, 2.5], hi)(x, y)
)");
  ScriptGraph view = script_view(module);
  const ScriptNode& node = *view.outputs()[0]->node;
  EXPECT_EQ(node.kind, "prim::PythonOp");
  EXPECT_EQ(node.function, "Scale");
  ASSERT_TRUE(node.has_attribute("inplace"));
  EXPECT_EQ(node.attribute("inplace")->to_int(), 1);
  EXPECT_EQ(node.inputs, view.inputs());
}

TEST(ScriptView, CapturedFunctions) {
  HandWritten f;
  Value x = f.input("x", square()), y = f.input("y", square());
  Value sum = f.call("aten::add.Tensor", {x, y});
  Value inner = f.call_whole("inner", {sum, 0}, ones({4, 2}));
  GraphModule module = f.returns(f.call("aten::relu", {inner}));
  expect_script(module, R"(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
      %y : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::add(%x, %y, %2)
  %4 : int = prim::Constant[value=0]()
  %5 : Function = prim::Constant[name="inner"]()
  %6 : Float(4, 2, strides=[2, 1], requires_grad=0, device=cpu) = prim::CallFunction(%5, %3, %4)
  %7 : Float(4, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::relu(%6)
  return (%7)
)",
                R"(
def forward(x: Tensor,
    y: Tensor) -> Tensor:
  _0 = torch.relu(__torch__.inner(torch.add(x, y), 0, ))
  return _0
)");
  ScriptGraph view = script_view(module);
  ASSERT_EQ(view.count("prim::CallFunction"), 1u);
  for (const ScriptNode* node : view.nodes())
    EXPECT_TRUE(node->kind != "prim::CallFunction" || node->output().is_complete_tensor());
}

TEST(ScriptView, FunctionsThatNothingIsKnownOf) {
  HandWritten f;
  Value x = f.input("x", square());
  f.call("torch._C._set_grad_enabled", {false});
  EXPECT_EQ(script_lines(f.returns(x))[1], "  %1 : Tensor = ^_set_grad_enabled[inplace=0](False)()");
}

}  // namespace
}  // namespace weft
