#include "weft/base/warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/expect_error.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> messages(const std::vector<Warning>& warnings) {
  std::vector<std::string> all;
  for (const Warning& warning : warnings) all.push_back(warning.message);
  return all;
}

// Puts back the handler that was there before a test.
struct HandlerScope {
  explicit HandlerScope(WarningHandler handler) : previous(set_warning_handler(std::move(handler))) {}
  ~HandlerScope() { set_warning_handler(previous); }
  WarningHandler previous;
};

TEST(Warning, NamesTheLineThatWarned) {
  WarningCapture capture;
  warn(WarningKind::kTracer, "{} became {}", "a tensor", 3);
  const std::string line = std::to_string(__LINE__ - 1);
  ASSERT_EQ(capture.warnings().size(), 1u);
  const Warning& warning = capture.warnings()[0];
  EXPECT_EQ(warning.kind, WarningKind::kTracer);
  EXPECT_EQ(warning.message, "a tensor became 3");
  EXPECT_EQ(warning.to_string(), __FILE__ ":" + line + ": TracerWarning: a tensor became 3");
  EXPECT_THAT(warning.where.function, HasSubstr("NamesTheLineThatWarned"));
}

TEST(Warning, MayBeAboutAnotherLocation) {
  WarningCapture capture;
  SourceFrame where;
  warn_at(where, WarningKind::kDeprecated, "use {}", "g");
  where.function = "f()";
  warn_at(where, WarningKind::kDeprecated, "use g");
  where.file = "f.cc", where.line = 7;
  warn_at(where, WarningKind::kUser, "use g");
  std::vector<std::string> texts;
  for (const Warning& warning : capture.warnings()) texts.push_back(warning.to_string());
  EXPECT_THAT(texts, ElementsAre("DeprecationWarning: use g", "f(): DeprecationWarning: use g",
                                 "f.cc:7: UserWarning: use g"));
}

TEST(WarningCapture, TheInnermostCollectsAndTheOuterGoesOnAfterIt) {
  WarningCapture outer;
  warn(WarningKind::kUser, "one");
  {
    WarningCapture inner;
    warn(WarningKind::kUser, "two");
    EXPECT_THAT(messages(inner.warnings()), ElementsAre("two"));
  }
  warn(WarningKind::kUser, "three");
  EXPECT_THAT(messages(outer.warnings()), ElementsAre("one", "three"));
  EXPECT_THAT(messages(outer.take()), ElementsAre("one", "three"));
  EXPECT_THAT(outer.warnings(), IsEmpty());
  warn(WarningKind::kUser, "four");
  EXPECT_THAT(messages(outer.warnings()), ElementsAre("four"));
}

TEST(WarningCapture, EndsByAnExceptionToo) {
  WarningCapture outer;
  try {
    WarningCapture inner;
    throw 1;
  } catch (int) {
  }
  warn(WarningKind::kUser, "after");
  EXPECT_THAT(messages(outer.warnings()), ElementsAre("after"));
}

TEST(WarningCapture, IsItsThreadsOnly) {
  std::atomic<int> handled = 0;
  HandlerScope scope([&](const Warning&) { ++handled; });
  WarningCapture capture;
  std::thread([] { warn(WarningKind::kUser, "elsewhere"); }).join();
  EXPECT_THAT(capture.warnings(), IsEmpty());
  EXPECT_EQ(handled, 1);
}

TEST(WarningHandler, GetsWhatNobodyCapturesAndIsReturnedWhenReplaced) {
  std::vector<std::string> first, second;
  HandlerScope scope([&](const Warning& warning) { first.push_back(warning.to_string()); });
  warn_at({}, WarningKind::kUser, "one");
  WarningHandler previous =
      set_warning_handler([&](const Warning& warning) { second.push_back(warning.message); });
  warn(WarningKind::kUser, "two");
  set_warning_handler(previous);
  warn_at({}, WarningKind::kTracer, "three");
  EXPECT_THAT(first, ElementsAre("UserWarning: one", "TracerWarning: three"));
  EXPECT_THAT(second, ElementsAre("two"));
}

TEST(WarningHandler, MayMakeErrorsOfWarnings) {
  HandlerScope scope([](const Warning& warning) { throw UserError(warning.message); });
  EXPECT_ERROR(warn(WarningKind::kUser, "now an error"), "now an error");
}

TEST(WarningHandler, MayReplaceItself) {
  int calls = 0;
  HandlerScope scope([&](const Warning&) {
    set_warning_handler([](const Warning&) {});
    ++calls;  // what this refers to is alive as long as the call
  });
  warn(WarningKind::kUser, "one");
  warn(WarningKind::kUser, "two");
  EXPECT_EQ(calls, 1);
}

TEST(WarningHandler, AtFirstPrintsEachTextOnce) {
  HandlerScope scope(nullptr);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) warn(WarningKind::kTracer, "in a loop");
  const std::string line = std::to_string(__LINE__ - 1);
  warn_at({}, WarningKind::kUser, "of no known place");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            __FILE__ ":" + line + ": TracerWarning: in a loop\nUserWarning: of no known place\n");
}

TEST(WarningHandler, IsCalledFromManyThreads) {
  std::atomic<int> handled = 0;
  HandlerScope scope([&](const Warning&) { ++handled; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        if (j % 10 == 0) set_warning_handler([&](const Warning&) { ++handled; });
        warn(WarningKind::kUser, "warning {}", j);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(handled, 400);
}

TEST(LibraryWarningsOff, SilencesTracerWarningsOnly) {
  WarningCapture capture;
  {
    LibraryWarningsOff off;
    {
      LibraryWarningsOff nested;
      warn(WarningKind::kTracer, "in the library, nested");
    }
    warn(WarningKind::kTracer, "in the library");
    warn(WarningKind::kUser, "still said");
  }
  warn(WarningKind::kTracer, "in user code");
  EXPECT_THAT(messages(capture.warnings()), ElementsAre("still said", "in user code"));
}

struct Printed {
  int* times;
};

}  // namespace
}  // namespace weft

template <>
struct fmt::formatter<weft::Printed> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const weft::Printed& printed, Context& context) const {
    ++*printed.times;
    return context.out();
  }
};

namespace weft {
namespace {

TEST(LibraryWarningsOff, MakesNoText) {
  int times = 0;
  WarningCapture capture;
  warn(WarningKind::kTracer, "{}", Printed{&times});
  EXPECT_EQ(times, 1);
  LibraryWarningsOff off;
  warn(WarningKind::kTracer, "{}", Printed{&times});
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace weft
