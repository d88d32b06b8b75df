#include "weft/base/detail/small_vector.h"

#include <gtest/gtest.h>

#include <string>

namespace weft {
namespace {

template <typename Vector>
void moves_leave_the_source_empty(const Vector& original) {
  Vector source(original), made(std::move(source));
  EXPECT_EQ(made, original);
  EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move)
  Vector assigned(original);
  assigned.push_back(original[0]);
  assigned = std::move(made);
  EXPECT_EQ(assigned, original);
  EXPECT_TRUE(made.empty());  // NOLINT(bugprone-use-after-move)
  made.push_back(original[0]);
  EXPECT_EQ(made[0], original[0]);
}

TEST(SmallVector, MovesInlineElements) {
  moves_leave_the_source_empty(SmallVector<int, 4>{1, 2, 3});
  moves_leave_the_source_empty(
      SmallVector<std::string, 4>{"a", "a string that is too long to be inside", "c"});
}

TEST(SmallVector, MovesElementsOnTheHeap) {
  moves_leave_the_source_empty(SmallVector<int, 2>{1, 2, 3, 4, 5});
  moves_leave_the_source_empty(SmallVector<std::string, 2>{"a", "b", "c", "d"});
}

TEST(SmallVector, AssignsBetweenInlineAndHeap) {
  SmallVector<int, 2> few{1}, many{1, 2, 3, 4};
  SmallVector<int, 2> target(many);
  target = few;
  EXPECT_EQ(target, few);
  target = many;
  EXPECT_EQ(target, many);
  int values[] = {7, 8, 9};
  target.assign(values, values + 3);
  EXPECT_EQ(target, (SmallVector<int, 2>{7, 8, 9}));
  target.assign(values, values);
  EXPECT_TRUE(target.empty());
}

TEST(SmallVector, GrowsFromItsOwnElement) {
  SmallVector<std::string, 1> list{"a string that is too long to be inside"};
  for (int i = 0; i < 5; ++i) list.push_back(list[0]);
  EXPECT_EQ(list.size(), 6u);
  EXPECT_EQ(list.back(), list[0]);
}

}  // namespace
}  // namespace weft
