#include "weft/base/error.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace weft {
namespace {

TEST(Error, KindsAndClasses) {
  EXPECT_ERROR_TYPE(UserError, require(false, "dim {} of {}", 3, 2), "dim 3 of 2");
  EXPECT_ERROR_TYPE(UnsupportedError, unsupported("no {} here", "fft"), "no fft here");
  EXPECT_ERROR_TYPE(InternalError, invariant(false, "broken"), "broken");
  EXPECT_ERROR_TYPE(UserError, throw FormatError("a bad file"), "a bad file")
      << "a format error is the user's";
  EXPECT_NO_THROW(require(true, "never"));
  EXPECT_NO_THROW(invariant(true, "never"));
}

TEST(Error, CarriesTheCallersLine) {
  try {
    fail("here");
  } catch (const UserError& error) {
    EXPECT_EQ(error.where().line(), static_cast<unsigned>(__LINE__ - 2));
    EXPECT_TRUE(std::string_view(error.where().file_name()).ends_with("error_test.cc"));
    EXPECT_EQ(error.message(), "here");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Error, InternalOnesAskForAReport) {
  EXPECT_INTERNAL_ERROR(invariant(false, "x"), "this is a fault in weft (");
  EXPECT_INTERNAL_ERROR(invariant(false, "x"), "please report it");
}

TEST(Error, LearnsOnItsWayOutWhatItCameThrough) {
  auto text_of = [](auto f) {
    try {
      f();
    } catch (const Error& error) {
      return error.text();
    }
    return std::string("nothing was thrown");
  };
  auto call = [](const char* name, auto f) {
    try {
      f();
    } catch (Error& error) {
      error.add_while(name);
      throw;
    }
  };
  EXPECT_EQ(text_of([&] {
              While outer([] { return std::string("training"); });
              call("calling outer", [&] {
                While middle([] { return std::string("running a graph"); });
                call("calling inner", [] {
                  While inner([] { return std::string("copying"); });
                  fail("bad");
                });
              });
            }),
            "bad\n  while copying\n  while calling inner\n  while running a graph\n  while calling outer\n  "
            "while training");
  EXPECT_EQ(text_of([&] { call("calling", [] { fail("bad"); }); }), "bad\n  while calling");
}

TEST(Error, NamesTheScopesInnermostFirst) {
  int described = 0;
  auto outer_text = [&] { return fmt::format("loading {} ({})", "net.pt2", ++described); };
  While outer(outer_text);
  EXPECT_ERROR(fail("bad"), "bad\n  while loading net.pt2 (1)");
  {
    auto inner_text = [] { return std::string("reading the header"); };
    While inner(inner_text);
    EXPECT_ERROR(fail("bad"), "bad\n  while reading the header\n  while loading net.pt2 (2)");
  }
  EXPECT_ERROR(fail("bad"), "bad\n  while loading net.pt2 (3)");
  EXPECT_EQ(described, 3) << "only errors describe";
}

TEST(Error, AScopeOwnsWhatDescribesIt) {
  std::string path = "a name that is too long to be kept inside of a string";
  While scope([path] { return "loading " + path; });
  path.clear();
  EXPECT_ERROR(fail("bad"), "bad\n  while loading a name that is too long to be kept inside of a string");
}

TEST(ExpectError, SaysWhatCameInstead) {
  auto words = [](::testing::AssertionResult result) { return std::string(result.message()); };
  using testing::throws_error;
  EXPECT_NE(words(throws_error<Error>([] {}, "the words")).find("came none"), std::string::npos);
  EXPECT_NE(words(throws_error<Error>([] { fail("other"); }, "the words")).find("came words: other"),
            std::string::npos);
  EXPECT_NE(words(throws_error<Error>([] { throw std::runtime_error("std"); }, "the words"))
                .find("another exception: std"),
            std::string::npos);
  EXPECT_NE(words(throws_error<FormatError>([] { fail("the words"); }, "the words")).find("another class"),
            std::string::npos);
  ErrorKind unsupported_kind = ErrorKind::kUnsupported;
  EXPECT_NE(words(throws_error<Error>([] { fail("the words"); }, "the words", &unsupported_kind))
                .find("came a user error"),
            std::string::npos);
  EXPECT_NE(words(throws_error<Error>([] { fail("xyz"); }, "xyz")).find("says too little"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
