// The rows of TestExport about structs as trees.
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "support/tensors.h"
#include "weft/core/pytree.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// A class that nobody registered.
struct UnregisteredData final : ValueObject {
  int64_t x = 3, y = 4;
  std::string type_name() const override { return "MyDataClass"; }
};

using MaybeInt = std::optional<int64_t>;
struct MyDataClass {
  MaybeInt x, y, z;
  WEFT_STRUCT_AS("test_pytree_register_data_class.MyDataClass", x, y, z)
};
struct MyOtherDataClass {
  MaybeInt x, y, z;
  static constexpr bool kKeepsNone = true;
  WEFT_STRUCT_AS("test_pytree_register_data_class.MyOtherDataClass", x, y, z)
};

template <typename T>
void expect_fields(const FlatTree& flat) {
  const T back = from_value<T>(tree_unflatten(flat.leaves, flat.spec));
  EXPECT_EQ(back.x, 3);
  EXPECT_EQ(back.y, 4);
  EXPECT_EQ(back.z, std::nullopt);
  EXPECT_EQ(TreeSpec::from_json(flat.spec.to_json()), flat.spec);
}

TEST(TestExport, test_pytree_register_data_class) {
  const FlatTree opaque = tree_flatten(Value(Ref<ValueObject>(make_ref<UnregisteredData>())));
  EXPECT_EQ(opaque.spec, TreeSpec());
  EXPECT_EQ(opaque.leaves.size(), 1u);

  const FlatTree dropped = tree_flatten(to_value(MyDataClass{.x = 3, .y = 4, .z = {}}));
  EXPECT_EQ(dropped.leaves, (ValueList{3, 4}));
  EXPECT_EQ(dropped.spec, TreeSpec::record(struct_type<MyDataClass>(), {0, 1}, {TreeSpec(), TreeSpec()}));
  EXPECT_EQ(dropped.spec.to_string(),
            "TreeSpec(test_pytree_register_data_class.MyDataClass, [['x', 'y'], ['z']], [*,\n  *])");
  expect_fields<MyDataClass>(dropped);

  const FlatTree kept = tree_flatten(to_value(MyOtherDataClass{.x = 3, .y = 4, .z = {}}));
  EXPECT_EQ(kept.leaves, (ValueList{3, 4, Value()}));
  EXPECT_EQ(kept.spec, TreeSpec::record(struct_type<MyOtherDataClass>(), {0, 1, 2},
                                        {TreeSpec(), TreeSpec(), TreeSpec()}));
  EXPECT_EQ(
      kept.spec.to_string(),
      "TreeSpec(test_pytree_register_data_class.MyOtherDataClass, [['x', 'y', 'z'], []], [*,\n  *,\n  *])");
  expect_fields<MyOtherDataClass>(kept);
}

struct Inner {
  int64_t x, y;
  WEFT_STRUCT_AS("test_pytree_register_nested_data_class.Inner", x, y)
};
struct Outer {
  Inner xy, ab;
  WEFT_STRUCT_AS("test_pytree_register_nested_data_class.Outer", xy, ab)
};

TEST(TestExport, test_pytree_register_nested_data_class) {
  const Value data = to_value(Outer{{1, 2}, {3, 4}});
  const Tensor one = ones({1});
  Dict input;
  input.set("dt1", Value::tuple({data, Value::tuple({Value(Dict())})}));
  input.set("dt2", Value::tuple({Value::tuple({one}), data}));
  const FlatTree flat = tree_flatten(input);
  ASSERT_EQ(flat.leaves.size(), 9u);
  EXPECT_EQ(ValueList(flat.leaves.begin(), flat.leaves.begin() + 4), (ValueList{1, 2, 3, 4}));
  EXPECT_TRUE(testing::close(flat.leaves[4].to_tensor(), ones({1})));
  EXPECT_EQ(ValueList(flat.leaves.begin() + 5, flat.leaves.end()), (ValueList{1, 2, 3, 4}));
  const Value back = tree_unflatten(flat.leaves, flat.spec);
  EXPECT_EQ(tree_structure(back), flat.spec);
  EXPECT_EQ(back, Value(input));
  EXPECT_EQ(TreeSpec::from_json(flat.spec.to_json()), flat.spec);
}

}  // namespace
}  // namespace weft
