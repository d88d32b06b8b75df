#include "weft/core/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/core/future.h"
#include "weft/core/struct.h"
#include "weft/core/value_walk.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace {

TEST(Value, IsSmall) { EXPECT_EQ(sizeof(Value), 16u); }

TEST(Value, HoldsEveryKind) {
  EXPECT_TRUE(Value().is_none());
  EXPECT_TRUE(Value(std::nullopt).is_none());
  EXPECT_TRUE(Value(Tensor()).is_none());
  EXPECT_EQ(Value(true).kind(), Value::Kind::kBool);
  EXPECT_EQ(Value(3).to_int(), 3);
  EXPECT_EQ(Value(2.5).to_double(), 2.5);
  EXPECT_EQ(Value(kInt32).to_dtype(), kInt32);
  EXPECT_EQ(Value("text").to_string_view(), "text");
  EXPECT_EQ(Value(Complex<double>(1, 2)).to_complex(), Complex<double>(1, 2));
  EXPECT_EQ(Value::tuple({1, 2}).elements().size(), 2u);
  const Tensor x = ones({2});
  EXPECT_TRUE(Value(x).to_tensor().impl() == x.impl());
}

TEST(Value, NumbersWiden) {
  EXPECT_EQ(Value(true).to_int(), 1);
  EXPECT_EQ(Value(3).to_double(), 3.0);
  EXPECT_EQ(Value(3).to_complex(), Complex<double>(3));
}

TEST(Value, WrongKindsAreErrorsThatNameBoth) {
  EXPECT_ERROR(Value("x").to_int(), "expected an integer but got a string ('x')");
  EXPECT_ERROR(Value(2.5).to_int(), "expected an integer but got a real number (2.5)");
  EXPECT_ERROR(Value(1).to_tensor(), "expected a tensor but got an integer (1)");
  EXPECT_ERROR(Value(1).elements(), "expected a list or tuple but got an integer (1)");
  EXPECT_ERROR(Value(1).to_dict(), "expected a dictionary but got an integer (1)");
  EXPECT_ERROR(Value().to_string_view(), "expected a string but got None (None)");
  EXPECT_ERROR(Value(1).to_dtype(), "expected a dtype but got an integer (1)");
}

TEST(Value, CopiesShareAndMovesEmpty) {
  Value list = Value::list({1});
  Value other = list;
  EXPECT_EQ(&list.elements(), &other.elements());
  const Value moved = std::move(list);
  EXPECT_TRUE(list.is_none());  // NOLINT(bugprone-use-after-move): what a moved-from value is
  EXPECT_EQ(moved, other);
}

// Deep enough to overflow the stack of whatever recurses over it.
template <typename F>
void expect_refused_when_deep(const F& wrap) {
  auto nest = [&] {
    Value deep = 1;
    for (int i = 0; i < 100'000; ++i) deep = wrap(deep);
  };
  EXPECT_USER_ERROR(nest(), "containers are nested more than 512 deep");
}

TEST(ValueNesting, IsRefusedBeyondWhatAWalkCanRecurseOver) {
  expect_refused_when_deep([](const Value& inner) { return Value::list({inner, 2}); });
  expect_refused_when_deep([](const Value& inner) { return Value::tuple({inner}); });
  expect_refused_when_deep([](const Value& inner) { return Value(Dict{{"k", inner}}); });
  expect_refused_when_deep([](const Value& inner) { return Value(Dict{{Value::tuple({inner}), 1}}); });
  const StructTypeRef type = register_struct("test.Nested", {"inner"});
  expect_refused_when_deep([&](const Value& inner) { return make_struct(type, {inner}); });
  expect_refused_when_deep([](const Value& inner) {
    const auto future = make_ref<FutureObject>([&] { return inner; });
    future->wait();
    return Value(Ref<ValueObject>(future));
  });
}

TEST(ValueNesting, CountsTheContainersInsideEachOther) {
  EXPECT_EQ(Value(1).nesting(), 0u);
  EXPECT_EQ(Value::list({}).nesting(), 1u);
  EXPECT_EQ(Value::list({1, Value::tuple({Dict{{"k", 2}}}), Value::list({})}).nesting(), 3u);
  Value deepest = 1;
  for (uint32_t i = 0; i < kMostNesting; ++i) deepest = Value::list({deepest});
  const Value same = Value::list(deepest.elements());
  EXPECT_EQ(deepest, same);
  EXPECT_EQ(deepest.to_string().size(), 2 * kMostNesting + 1);
  EXPECT_EQ(map_leaves(deepest, [](const Value& leaf) { return leaf; }), deepest);
}

TEST(Value, KeepsItsTensorAlive) {
  Tensor x = ones({2});
  {
    const Value boxed = x;
    EXPECT_EQ(x.impl()->use_count(), 2u);
  }
  EXPECT_EQ(x.impl()->use_count(), 1u);
}

TEST(Value, EqualityIsStructural) {
  EXPECT_EQ(Value::list({1, "a", Value::tuple({2.5})}), Value::list({1, "a", Value::tuple({2.5})}));
  EXPECT_FALSE(Value::list({1}) == Value::tuple({1}));
  EXPECT_FALSE(Value(1) == Value(1.0));
  EXPECT_FALSE(Value(1) == Value(true));
  EXPECT_FALSE(Value(ones({1})) == Value(ones({1})));
}

TEST(Value, PrintsInPythonsSpelling) {
  EXPECT_EQ(Value::list({1, 2.0, true, {}}).to_string(), "[1, 2.0, True, None]");
  EXPECT_EQ(Value::tuple({1}).to_string(), "(1,)");
  EXPECT_EQ(Value(Dict{{"a", 1}, {2, Value::list({})}}).to_string(), "{'a': 1, 2: []}");
  EXPECT_EQ(Value("it's").to_string(), "\"it's\"");
  EXPECT_EQ(Value("say \"it's\"\n").to_string(), R"('say "it\'s"\n')");
  EXPECT_EQ(Value(ones({2, 3})).to_string(), "f32[2, 3]");
}

TEST(Dict, KeepsTheOrderOfInsertion) {
  Dict dict{{"b", 1}, {"a", 2}};
  dict.set("c", 3);
  dict.set("b", 4);
  EXPECT_EQ(Value(dict).to_string(), "{'b': 4, 'a': 2, 'c': 3}");
  EXPECT_TRUE(dict.erase("a"));
  EXPECT_FALSE(dict.erase("a"));
  EXPECT_EQ(Value(dict).to_string(), "{'b': 4, 'c': 3}");
  EXPECT_ERROR(dict.at("z"), "no entry 'z'; the dictionary has ['b', 'c']");
}

TEST(Dict, TensorKeysCompareByIdentity) {
  const Tensor x = ones({1}), y = ones({1});
  const Dict dict{{x, "x"}, {y, "y"}};
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_EQ(dict.at(y), Value("y"));
}

TEST(Value, NumbersAreWrittenAsPythonWritesThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Value(std::copysign(nan, -1.0)).to_string(), "nan");
  EXPECT_EQ(Value(-inf).to_string(), "-inf");
  EXPECT_EQ(Value(1e-5).to_string(), "1e-05");
  EXPECT_EQ(Value(2.0).to_string(), "2.0");
  auto text = [](double re, double im) { return Value(Scalar(Complex<double>(re, im))).to_string(); };
  EXPECT_EQ(text(1, 2), "(1+2j)");
  EXPECT_EQ(text(1.5, -2), "(1.5-2j)");
  EXPECT_EQ(text(0, -2), "-2j");
  EXPECT_EQ(text(0, 0), "0j");
  EXPECT_EQ(text(-0.0, 2), "(-0+2j)");
  EXPECT_EQ(text(-inf, std::copysign(nan, -1.0)), "(-inf+nanj)");
  EXPECT_EQ(text(nan, inf), "(nan+infj)");
}

TEST(Value, GuardsOfItsConversionsNameTheLineOfTheirCaller) {
  auto env = ShapeEnv::create();
  const Value value(env->create_symbol(8, "x.size(0)"));
  EXPECT_EQ(value.to_int(), 8);
  const std::string line = std::to_string(__LINE__ - 1);
  ASSERT_EQ(env->guards().size(), 1u);
  EXPECT_EQ(env->guards()[0].where.to_string(), __FILE__ ":" + line);
}

}  // namespace
}  // namespace weft
