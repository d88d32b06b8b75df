// Graphs that are called as Python functions are: by position, by name, with `*args` and `**kwargs`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/graph/interpreter.h"
#include "weft/graph/parse.h"

namespace weft {
namespace {

// What the inputs are, in the order of the text.
GraphModule inputs_of(std::string_view parameters, std::string_view result) {
  return GraphModule(parse_code(fmt::format("def forward(self, {}):\n    return {}\n", parameters, result)));
}

// A call gives the same in a prepared graph and node by node.
std::string called(const GraphModule& module, std::initializer_list<Value> args, const Kwargs& kwargs = {}) {
  const std::string text = module.call(args, kwargs).to_string();
  EXPECT_EQ(Interpreter(module).run(args, kwargs).to_string(), text);
  return text;
}

TEST(GraphInputs, StarsTakeWhatIsLeftOver) {
  GraphModule module = inputs_of("x, *args, **kwargs", "[x, args, kwargs]");
  EXPECT_EQ(called(module, {1}), "[1, (), {}]");
  EXPECT_EQ(called(module, {1, 2, 3}), "[1, (2, 3), {}]");
  EXPECT_EQ(called(module, {1, 2}, {{"foo", 4}}), "[1, (2,), {'foo': 4}]");
  EXPECT_EQ(called(module, {}, {{"foo", 4}, {"x", 5}, {"kwargs", 6}}), "[5, (), {'foo': 4, 'kwargs': 6}]");
  EXPECT_ERROR(module.call({}, {{"foo", 4}}), "forward: argument 'x' is missing");
  EXPECT_ERROR(module.call({1}, {{"x", 4}}), "forward: argument 'x' is given twice");
  EXPECT_ERROR(module.call({1}, {{"foo", 4}, {"foo", 5}}), "forward: argument 'foo' is given twice");
  EXPECT_ERROR(Interpreter(module).run({}, {{"foo", 4}}), "forward: argument 'x' is missing");
}

TEST(GraphInputs, NamesAloneAreADictionary) {
  GraphModule module = inputs_of("x, n = 7, **kwargs", "[x, n, kwargs]");
  EXPECT_EQ(called(module, {1}), "[1, 7, {}]");
  EXPECT_EQ(called(module, {1, 2}, {{"foo", 4}}), "[1, 2, {'foo': 4}]");
  EXPECT_EQ(called(module, {1}, {{"n", 3}, {"foo", 4}}), "[1, 3, {'foo': 4}]");
  // As C++ gives it, by its position.
  EXPECT_EQ(called(module, {1, 2, Dict{{"foo", 4}}}), "[1, 2, {'foo': 4}]");
  EXPECT_ERROR(module.call({1, 2, 3}),
               "the graph takes 2 inputs by position but 3 were given; '**kwargs' is a dictionary");
  EXPECT_ERROR(module.call({1, 2, Dict(), 3}), "the graph takes 3 inputs but 4 were given");
}

TEST(GraphInputs, OthersTakeWhatIsTheirs) {
  GraphModule module = inputs_of("x, n = 7", "[x, n]");
  EXPECT_EQ(called(module, {1}), "[1, 7]");
  EXPECT_EQ(called(module, {}, {{"n", 2}, {"x", 1}}), "[1, 2]");
  EXPECT_ERROR(module.call({1, 2, 3}), "the graph takes 2 inputs but 3 were given");
  EXPECT_ERROR(module.call({1}, {{"foo", 4}}),
               "'foo' is not in forward() method's arguments,\nvalid arguments name are [x,n]");
  EXPECT_ERROR(module.call({1}, {{"x", 4}}), "forward: argument 'x' is given twice");
}

// Graphs that call graphs bind their names by the same rules.
TEST(GraphInputs, OfAGraphThatIsCalledByAnother) {
  GraphModule inner = inputs_of("x, *args, **kwargs", "[x, args, kwargs]");
  Graph graph = parse_code("def forward(self, a, b):\n    c = self.sub(a, b, 3, foo = b)\n    return c\n");
  GraphModule outer(GraphModule::Attributes{{"sub", Value(Ref<ValueObject>(inner.callable()))}},
                    std::move(graph));
  EXPECT_EQ(called(outer, {1, 2}), "[1, (2, 3), {'foo': 2}]");
}

// A transformed graph is called in the same ways.
TEST(GraphInputs, StayWhenAGraphIsTransformed) {
  GraphModule module = Transformer(inputs_of("x, *args, **kwargs", "[x, args, kwargs]")).transform();
  EXPECT_EQ(called(module, {1, 2}, {{"foo", 4}}), "[1, (2,), {'foo': 4}]");
}

}  // namespace
}  // namespace weft
