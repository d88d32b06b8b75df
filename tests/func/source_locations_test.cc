// Source locations in errors of programs that have no debug information, as this one: never a line of weft's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SourceLocations, OfQuestionsThatWeftAsksForTheProgram) {
  FakeMode fake({.shape_env = ShapeEnv::create()});
  const Tensor x = fake.fake_of(ones({3}, kInt64), "x");
  for (bool as_bool : {true, false}) try {
      as_bool ? x.sum().item().to_bool() : x.sum().item().to_int() != 0;
      ADD_FAILURE() << "there should be an error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is only known at run time"));
      EXPECT_THAT(error.what(), Not(HasSubstr("src/")));
      EXPECT_THAT(error.what(), Not(HasSubstr("include/weft/")));
    }
}

}  // namespace
}  // namespace weft
