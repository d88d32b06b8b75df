#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/core/callable.h"
#include "weft/core/pytree.h"
#include "weft/core/typed_value.h"

namespace weft {
namespace {

struct Point {
  Tensor x;
  int64_t n = 0;
  WEFT_STRUCT(Point, x, n)
};

struct Batch {
  std::vector<Point> points;
  std::optional<Tensor> labels;
  std::map<std::string, double> weights;
  WEFT_STRUCT_AS("test.Batch", points, labels, weights)
};

struct Foreign {
  int width = 0, height = 0;
};

}  // namespace

template <>
struct StructTraits<Foreign> {
  static const char* name() { return "test.Foreign"; }
  static const char* field_names() { return "width, height"; }
  template <typename S>
  static auto fields(S& object) {
    return std::tie(object.width, object.height);
  }
};

namespace {

TEST(Structs, ConvertFieldByField) {
  const Tensor x = ones({2});
  const Value value = to_value(Point{x, 3});
  EXPECT_EQ(value.to_string(), "Point(x=f32[2], n=3)");
  const auto* record = value.object_as<StructObject>();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->field("n"), Value(3));
  EXPECT_ERROR(record->field("y"), "struct Point has no field y; it has [x, n]");
  const Point back = from_value<Point>(value);
  EXPECT_TRUE(back.x.impl() == x.impl());
  EXPECT_EQ(back.n, 3);
}

TEST(Structs, NestInEachOtherAndInContainers) {
  const Batch batch{{{ones({1}), 1}, {ones({2}), 2}}, std::nullopt, {{"a", 0.5}}};
  const Value value = to_value(std::vector<Batch>{batch});
  EXPECT_EQ(
      value.to_string(),
      "[test.Batch(points=[Point(x=f32[1], n=1), Point(x=f32[2], n=2)], labels=None, weights={'a': 0.5})]");
  const auto back = from_value<std::vector<Batch>>(value);
  EXPECT_EQ(to_value(back), value);
  std::vector<std::string> paths;
  for (const PathLeaf& leaf : tree_flatten_with_path(value)) paths.push_back(to_string(leaf.path));
  EXPECT_EQ(paths, (std::vector<std::string>{"[0].points[0].x", "[0].points[0].n", "[0].points[1].x",
                                             "[0].points[1].n", "[0].weights['a']"}));
}

TEST(Structs, OfOthersAreDescribedFromOutside) {
  const Value value = to_value(Foreign{640, 480});
  EXPECT_EQ(value.to_string(), "test.Foreign(width=640, height=480)");
  EXPECT_EQ(from_value<Foreign>(value).height, 480);
}

TEST(Structs, ReadFieldsByNameWhateverTheirOrder) {
  const StructTypeRef swapped = make_ref<StructType>("Point", std::vector<std::string>{"n", "x"});
  EXPECT_EQ(from_value<Point>(make_struct(swapped, {7, ones({2})})).n, 7);
}

TEST(Structs, ErrorsNameThePath) {
  const auto as_batch = [](const Value& value) { return from_value<Batch>(value); };
  EXPECT_ERROR(as_batch(3), "expected a struct test.Batch but got an integer (3)");
  EXPECT_ERROR(as_batch(to_value(Foreign())),
               "expected a struct test.Batch but got an object (test.Foreign(");
  const Value bad_point = make_struct(struct_type<Point>(), {"x", 1});
  EXPECT_ERROR(as_batch(make_struct(struct_type<Batch>(), {Value::list({bad_point}), {}, Dict()})),
               "at .points[0].x: expected a tensor but got a string ('x')");
  const StructTypeRef other = make_ref<StructType>("Point", std::vector<std::string>{"x", "y"});
  EXPECT_ERROR(from_value<Point>(make_struct(other, {1, 2})),
               "expected a struct Point with the fields [x, n] but got one with [x, y]");
}

TEST(Structs, NamesAndFieldsAreChecked) {
  EXPECT_ERROR(register_struct("test.Twice", {"a", "a"}), "struct test.Twice has two fields named a");
  EXPECT_ERROR(register_struct("", {}), "a struct type needs a name");
  const StructTypeRef first = register_struct("test.Same", {"a"});
  EXPECT_EQ(register_struct("test.Same", {"a"}), first);
  EXPECT_ERROR(register_struct("test.Same", {"b"}),
               "struct test.Same is registered with the fields [a] and cannot be registered with [b]");
  EXPECT_ERROR(make_struct(first, {1, 2}), "struct test.Same has 1 fields, but 2 values came");
  EXPECT_EQ(find_struct("test.Same"), first);
  EXPECT_FALSE(find_struct("test.Unknown"));
}

TEST(Structs, AreEqualWhenTheirFieldsAre) {
  const Tensor x = ones({2});
  EXPECT_EQ(to_value(Point{x, 3}), to_value(Point{x, 3}));
  EXPECT_FALSE(to_value(Point{x, 3}) == to_value(Point{x, 4}));
  EXPECT_FALSE(to_value(Point{x, 3}) == to_value(Point{ones({2}), 3}));
}

template <typename T>
void expect_round_trip(const T& value, const char* text) {
  const Value boxed = to_value(value);
  EXPECT_EQ(boxed.to_string(), text);
  EXPECT_EQ(to_value(from_value<T>(boxed)), boxed) << text;
}

TEST(TypedValue, EveryTypeGoesThere) {
  expect_round_trip(true, "True");
  expect_round_trip(int64_t{-3}, "-3");
  expect_round_trip(int32_t{7}, "7");
  expect_round_trip(0.25f, "0.25");
  expect_round_trip(2.0, "2.0");
  expect_round_trip(std::string("it"), "'it'");
  expect_round_trip(kFloat16, std::string(dtype_name(kFloat16)).c_str());
  expect_round_trip(std::optional<int64_t>(), "None");
  expect_round_trip(std::optional<int64_t>(5), "5");
  expect_round_trip(std::vector<bool>{true, false}, "[True, False]");
  expect_round_trip(std::vector<std::vector<int64_t>>{{1}, {}}, "[[1], []]");
  expect_round_trip(std::array<double, 2>{1, 2}, "[1.0, 2.0]");
  expect_round_trip(std::pair<int64_t, std::string>(1, "a"), "(1, 'a')");
  expect_round_trip(std::tuple<int64_t>(1), "(1,)");
  expect_round_trip(std::tuple<>(), "()");
  expect_round_trip(std::map<std::string, std::optional<double>>{{"b", {}}, {"a", 1}},
                    "{'a': 1.0, 'b': None}");
  expect_round_trip(std::map<int64_t, std::tuple<bool, Dict>>{{1, {true, Dict{{"k", 2}}}}},
                    "{1: (True, {'k': 2})}");
  expect_round_trip(Scalar(2.5), "2.5");
  expect_round_trip(Complex<double>(1, 2), to_value(Complex<double>(1, 2)).to_string().c_str());
  EXPECT_TRUE(from_value<Tensor>(to_value(ones({2}))).defined());
  EXPECT_FALSE(from_value<Tensor>(to_value(Tensor())).defined());
}

TEST(TypedValue, NumbersWidenButDoNotNarrow) {
  EXPECT_EQ(from_value<double>(3), 3.0);
  EXPECT_EQ(from_value<int64_t>(true), 1);
  EXPECT_EQ(from_value<Complex<double>>(2), Complex<double>(2));
  EXPECT_ERROR(from_value<int64_t>(2.5), "expected an integer but got a real number (2.5)");
  EXPECT_ERROR(from_value<bool>(1), "expected a bool but got an integer (1)");
  EXPECT_ERROR(from_value<int8_t>(300), "expected an integer from -128 to 127 but got 300");
  EXPECT_ERROR(from_value<uint64_t>(-1), "expected an integer from 0 to 18446744073709551615 but got -1");
}

TEST(TypedValue, ErrorsNameThePath) {
  using Tensors = std::map<std::string, std::vector<Tensor>>;
  EXPECT_ERROR(from_value<Tensors>(Dict{{"a", Value::list({ones({1}), 3})}}),
               "at ['a'][1]: expected a tensor but got an integer (3)");
  EXPECT_ERROR(from_value<Tensors>(Dict{{1, Value::list({})}}),
               "at [1]: expected a string but got an integer (1)");
  EXPECT_ERROR(from_value<Tensors>(Value::list({})), "expected a dictionary but got a list ([])");
  EXPECT_ERROR(from_value<std::vector<int64_t>>(1), "expected a list or tuple but got an integer (1)");
  EXPECT_ERROR((from_value<std::pair<int64_t, int64_t>>(Value::tuple({1}))),
               "expected 2 elements but got 1 ((1,))");
  EXPECT_ERROR(from_value<std::string>({}), "expected a string but got None");
}

int64_t count_elements(const Tensor& x) { return x.plain_numel(); }

TEST(Callable, TakesItsTypesFromTheSignature) {
  const ValueFunction scaled =
      make_callable([](const Tensor& x, std::optional<double> by) { return x * by.value_or(2); });
  EXPECT_EQ(testing::values(scaled(ValueList{ones({2}), {}}).to_tensor()), (std::vector<double>{2, 2}));
  EXPECT_EQ(testing::values(scaled(ValueList{ones({2}), 3}).to_tensor()), (std::vector<double>{3, 3}));
  EXPECT_EQ(make_callable(count_elements)(ValueList{ones({2, 3})}), Value(6));
}

TEST(Callable, PassesViewsReferencesAndStructs) {
  const ValueFunction f =
      make_callable([](std::string_view name, std::span<const int64_t> sizes, Point& point) {
        return std::pair(std::string(name) + "!", static_cast<int64_t>(sizes.size()) + point.n);
      });
  EXPECT_EQ(f(ValueList{"hello", Value::list({1, 2}), to_value(Point{ones({1}), 5})}),
            Value::tuple({"hello!", 7}));
}

TEST(Callable, ReturnsNoneForNothing) {
  int64_t calls = 0;
  const ValueFunction f = make_callable([&calls](int64_t by) { calls += by; });
  EXPECT_TRUE(f(ValueList{4}).is_none());
  EXPECT_EQ(calls, 4);
}

TEST(Callable, ErrorsNameTheArgument) {
  const ValueFunction f = make_callable([](double, const std::map<std::string, std::vector<Tensor>>&) {});
  EXPECT_ERROR(f(ValueList{1}), "expected 2 arguments but got 1");
  EXPECT_ERROR(f(ValueList{"x", Dict()}), "argument 0: expected a real number but got a string ('x')");
  EXPECT_ERROR(f(ValueList{1, Dict{{"a", Value::tuple({3})}}}),
               "argument 1['a'][0]: expected a tensor but got an integer (3)");
}

}  // namespace
}  // namespace weft
