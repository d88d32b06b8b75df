#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "weft/base/error.h"
#include "weft/base/function_ref.h"

namespace weft::testing {

inline const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUser:
      return "user";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "unknown";
}

template <typename E>
bool is_a(const Error* error) {
  return dynamic_cast<const E*>(error) != nullptr;
}

// Runs `statement` and checks that it throws an `E` of that kind whose words contain `fragment`; says what
// came instead.
template <typename E>
::testing::AssertionResult throws_error(FunctionRef<void()> statement, std::string_view fragment,
                                        const ErrorKind* kind = nullptr) {
  auto fail = ::testing::AssertionFailure();
  if (fragment.size() <= 4) return fail << "'" << fragment << "' says too little of the error";
  try {
    statement();
  } catch (const Error& error) {
    if constexpr (!std::is_same_v<E, Error>)
      if (!is_a<E>(&error))
        return fail << "expected another class of error with: " << fragment << "\n  came: " << error.what();
    if (kind && error.kind() != *kind)
      return fail << "expected a " << kind_name(*kind) << " error, came a " << kind_name(error.kind())
                  << " error: " << error.what();
    if (std::string_view(error.what()).find(fragment) != std::string_view::npos)
      return ::testing::AssertionSuccess();
    return fail << "expected words: " << fragment << "\n      came words: " << error.what();
  } catch (const std::exception& error) {
    return fail << "expected a weft error with: " << fragment
                << "\n  came another exception: " << error.what();
  }
  return fail << "expected an error with: " << fragment << "\n  came none";
}

}  // namespace weft::testing

#define WEFT_EXPECT_THROWN(type, statement, fragment, kind)                                               \
  EXPECT_TRUE(::weft::testing::throws_error<type>([&] { static_cast<void>(statement); }, fragment, kind)) \
      << "  by: " #statement

// The statement throws a weft::Error whose words contain the fragment:
//   EXPECT_ERROR(reshape(x, {4, 2}), "cannot view f32[2, 3]");
#define EXPECT_ERROR(statement, fragment) WEFT_EXPECT_THROWN(::weft::Error, statement, fragment, nullptr)
// ... and is of that class: EXPECT_ERROR_TYPE(FormatError, Json::parse("{"), "line 1").
#define EXPECT_ERROR_TYPE(type, statement, fragment) WEFT_EXPECT_THROWN(type, statement, fragment, nullptr)
// ... and of that kind: EXPECT_ERROR_KIND(ErrorKind::kUnsupported, run(), "not implemented").
#define EXPECT_ERROR_KIND(error_kind, statement, fragment)                \
  do {                                                                    \
    const ::weft::ErrorKind wanted_kind = error_kind;                     \
    WEFT_EXPECT_THROWN(::weft::Error, statement, fragment, &wanted_kind); \
  } while (false)
#define EXPECT_USER_ERROR(statement, fragment) \
  EXPECT_ERROR_KIND(::weft::ErrorKind::kUser, statement, fragment)
#define EXPECT_UNSUPPORTED(statement, fragment) \
  EXPECT_ERROR_KIND(::weft::ErrorKind::kUnsupported, statement, fragment)
#define EXPECT_INTERNAL_ERROR(statement, fragment) \
  EXPECT_ERROR_KIND(::weft::ErrorKind::kInternal, statement, fragment)
