#include "weft/base/stack_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/debug_info.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kThisFile = "tests/base/stack_trace_test.cc";

TEST(StackTrace, NamesTheCallerItsFileAndLine) {
  const StackTrace trace = StackTrace::capture();
  const uint32_t line = __LINE__ - 1;
  const SourceFrame frame = trace.user_frame();
  EXPECT_EQ(frame.line, line);
  EXPECT_THAT(frame.file, EndsWith(kThisFile));
  EXPECT_THAT(frame.function, HasSubstr("StackTrace_NamesTheCallerItsFileAndLine_Test::TestBody()"));
  EXPECT_FALSE(frame.is_library);
}

TEST(StackTrace, HasTheFileAsTheCompilerWasGivenIt) {
  EXPECT_EQ(StackTrace::capture().user_frame().file, __FILE__);
}

TEST(StackTrace, IsEmptyUntilTaken) {
  const StackTrace none;
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.frames().empty());
  EXPECT_FALSE(none.user_frame().is_known());
  EXPECT_EQ(none.user_frame().to_string(), "an unknown place");
  EXPECT_EQ(none.to_string(), "");
}

uint32_t inner_line, outer_line;

[[gnu::always_inline]] inline StackTrace take_inlined() {
  inner_line = __LINE__ + 1;
  return StackTrace::capture();
}
[[gnu::noinline]] StackTrace take() {
  outer_line = __LINE__ + 1;
  StackTrace trace = take_inlined();
  return trace;
}

TEST(StackTrace, CopiesAreEqual) {
  const StackTrace trace = take();
  StackTrace copy = trace, assigned;
  assigned = trace;
  EXPECT_TRUE(std::ranges::equal(copy.addresses(), trace.addresses()));
  EXPECT_TRUE(std::ranges::equal(assigned.addresses(), trace.addresses()));
  EXPECT_GE(trace.addresses().size(), 2u);
}

TEST(StackTrace, HasInlinedCallsToo) {
  const std::vector<SourceFrame> frames = take().frames();
  ASSERT_GE(frames.size(), 3u);
  EXPECT_THAT(frames[0].function, HasSubstr("take_inlined"));
  EXPECT_EQ(frames[0].line, inner_line);
  EXPECT_THAT(frames[1].function, HasSubstr("take()"));
  EXPECT_EQ(frames[1].line, outer_line);
  EXPECT_THAT(frames[2].function, HasSubstr("HasInlinedCallsToo"));
  EXPECT_THAT(frames[2].file, EndsWith(kThisFile));
}

TEST(StackTrace, KnowsWhichFramesAreTheLibrarys) {
  StackTrace trace;
  const uint32_t line = __LINE__ + 2;
  auto describe = [&] {
    trace = StackTrace::capture();
    return std::string();
  };
  const While scope(describe);
  const UserError error("the library asks what the scope is about");
  const std::vector<SourceFrame> frames = trace.frames();
  ASSERT_GE(frames.size(), 4u);
  EXPECT_FALSE(frames[0].is_library);
  EXPECT_EQ(frames[0].line, line);
  auto is_library = [](const SourceFrame& frame) { return frame.is_library; };
  auto library = std::find_if(frames.begin(), frames.end(), is_library);
  auto test = std::find_if_not(library, frames.end(), is_library);
  ASSERT_NE(test, frames.end());
  EXPECT_THAT((test - 1)->function, HasSubstr("Error"));
  EXPECT_THAT(test->function, HasSubstr("KnowsWhichFramesAreTheLibrarys_Test::TestBody()"));
  EXPECT_THAT(trace.to_string(), Not(HasSubstr("Error::Error")));
}

TEST(StackTrace, PrintsALineAFrame) {
  const StackTrace trace = take();
  const uint32_t line = __LINE__ - 1;
  const std::string text = trace.to_string();
  EXPECT_THAT(text, StartsWith("  at " __FILE__ ":" + std::to_string(inner_line) + " in "));
  EXPECT_THAT(text, HasSubstr("\n  at " __FILE__ ":" + std::to_string(outer_line) + " in "));
  EXPECT_THAT(text, HasSubstr("\n  at " __FILE__ ":" + std::to_string(line) + " in weft::"));
  EXPECT_THAT(text, Not(EndsWith("\n")));
}

TEST(SourceFrame, SaysWhatIsKnown) {
  SourceFrame frame;
  EXPECT_EQ(frame.place(), "an unknown place");
  frame.function = "f(int)";
  EXPECT_EQ(frame.place(), "f(int)");
  EXPECT_EQ(frame.to_string(), "f(int)");
  frame.file = "a.cc", frame.line = 3;
  EXPECT_EQ(frame.place(), "a.cc:3");
  EXPECT_EQ(frame.to_string(), "a.cc:3 in f(int)");
  const SourceFrame here = std::source_location::current();
  EXPECT_EQ(here.place(), __FILE__ ":" + std::to_string(__LINE__ - 1));
}

TEST(SourceFrame, ReadsTheLine) {
  SourceFrame here = std::source_location::current();
  EXPECT_EQ(here.code(), "SourceFrame here = std::source_location::current();");
  here.line = 1'000'000;
  EXPECT_EQ(here.code(), "");
  here.file = "there/is/no/such.cc", here.line = 1;
  EXPECT_EQ(here.code(), "");
}

// A compiler cache hands out what was compiled in another clone, which may be gone.
TEST(SourceFrame, FindsASourceBelowAFolderOfTheProgram) {
  namespace fs = std::filesystem;
  const std::string name = "weft_sources_" + std::to_string(getpid());
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / name;
  fs::create_directory(folder);
  std::ofstream(folder / "model.cc") << "first\n  second  \n";
  SourceFrame frame;
  frame.file = "../../../" + name + "/model.cc", frame.folder = "/there/is/no/such", frame.line = 2;
  EXPECT_EQ(frame.code(), "second");
  fs::remove_all(folder);
  EXPECT_EQ(frame.code(), "");
}

TEST(StackTrace, HasTheFunctionOnlyWhereThereIsNoDebugInformation) {
  const std::vector<SourceFrame> frames = StackTrace::capture().frames();
  ASSERT_GE(frames.size(), 2u);
  EXPECT_THAT(frames[1].function, StartsWith("void testing::internal::HandleExceptionsInMethodIfSupported<"));
  EXPECT_EQ(frames[1].line, 0u);
  EXPECT_EQ(frames[1].file, "");
  EXPECT_FALSE(frames[1].is_library);
}

TEST(DebugInfo, NamesExportedFunctionsWithoutALibraryThatReadsIt) {
  const detail::Code code = detail::find_exported_code(reinterpret_cast<const void*>(&getpid));
  EXPECT_THAT(code.module, HasSubstr("libc.so"));
  ASSERT_EQ(code.locations.size(), 1u);
  EXPECT_THAT(code.locations[0].symbol, EndsWith("getpid"));
  EXPECT_EQ(code.locations[0].line, 0u);
  int no_code = 0;
  EXPECT_TRUE(detail::find_exported_code(&no_code).locations.empty());
}

TEST(DebugInfo, KnowsNothingOfWhatIsNoCode) {
  int no_code = 0;
  EXPECT_TRUE(detail::find_code(nullptr).locations.empty());
  EXPECT_TRUE(detail::find_code(&no_code).locations.empty());
}

TEST(StackTrace, WorksOnEveryThread) {
  SourceFrame frame;
  std::thread([&] { frame = StackTrace::capture().user_frame(); }).join();
  EXPECT_EQ(frame.line, static_cast<uint32_t>(__LINE__ - 1));
  EXPECT_THAT(frame.file, EndsWith(kThisFile));
}

TEST(StackTrace, ManyThreadsMayAskAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& text : texts)
    threads.emplace_back([&text] {
      for (int i = 0; i < 50; ++i) text = StackTrace::capture().user_frame().place();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts, ::testing::Each(texts[0]));
  EXPECT_THAT(texts[0], HasSubstr(kThisFile));
}

[[gnu::noinline]] StackTrace take_below(int depth) {
  StackTrace trace = depth == 0 ? StackTrace::capture() : take_below(depth - 1);
  asm volatile("" ::: "memory");  // a call that is not the last thing is no jump
  return trace;
}

TEST(StackTrace, KeepsTheInnermostOfADeepStack) {
  const StackTrace trace = take_below(10'000);
  EXPECT_EQ(trace.addresses().size(), StackTrace::kMostFrames);
  EXPECT_THAT(trace.user_frame().function, HasSubstr("take_below(int)"));
}

// Where a signal handler, and code that calls without frame pointers, leave what they took.
StackTrace taken;
[[gnu::noinline]] void take_into_global() {
  taken = StackTrace::capture();
  asm volatile("" ::: "memory");
}

TEST(StackTrace, WorksOnASignalsOwnStack) {
  std::vector<char> memory(size_t{1} << 16);
  const stack_t own = {.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  stack_t saved;
  ASSERT_EQ(sigaltstack(&own, &saved), 0);
  struct sigaction action = {}, previous;
  action.sa_handler = [](int) { take_into_global(); };
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &previous, nullptr);
  sigaltstack(&saved, nullptr);
  ASSERT_EQ(taken.addresses().size(), 1u);
  EXPECT_THAT(taken.user_frame().function, HasSubstr("take_into_global"));
}

#if defined(__x86_64__)
// Calls take_into_global as code without frame pointers may: with any word in their register.
[[gnu::noinline]] void take_with_frame_pointer(uintptr_t word) {
  register void (*callee)() asm("r14") = &take_into_global;
  asm volatile(
      "movq %%rsp, %%r12\n"
      "subq $144, %%rsp\n"  // past what a function may keep below its stack pointer
      "andq $-16, %%rsp\n"
      "movq %%rbp, %%r13\n"
      "movq %%rbx, %%rbp\n"
      "callq *%%r14\n"
      "movq %%r13, %%rbp\n"
      "movq %%r12, %%rsp\n"
      : "+r"(callee)
      : "b"(word)
      : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
}

// The same with something that looks like the record of a call. Without the sanitizer, which keeps locals
// elsewhere.
[[gnu::noinline, gnu::no_sanitize_address]] void take_below_record(uintptr_t caller,
                                                                   uintptr_t return_address) {
  const uintptr_t record[2] = {caller, return_address};
  asm volatile("" : : "r"(record) : "memory");
  take_with_frame_pointer(reinterpret_cast<uintptr_t>(record));
  asm volatile("" : : "r"(record) : "memory");
}

TEST(StackTrace, SeesTheFirstCallerAndStopsWhereThereAreNoFramePointers) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const std::vector<uintptr_t> heap(4, 1);
  for (uintptr_t word : {uintptr_t{0}, uintptr_t{1}, ~uintptr_t{0}, ~uintptr_t{7}, uintptr_t{1} << 63,
                         reinterpret_cast<uintptr_t>(heap.data()), here - 4096, here + 1}) {
    take_with_frame_pointer(word);
    ASSERT_EQ(taken.addresses().size(), 2u) << word;
    EXPECT_THAT(taken.frames().back().function, HasSubstr("take_with_frame_pointer")) << word;
  }
  take_below_record(0, 0);
  EXPECT_EQ(taken.addresses().size(), 2u);
}

TEST(StackTrace, WordsThatAreNoCodeAreNoFrames) {
  take_below_record(0, 12345);
  EXPECT_EQ(taken.addresses().size(), 3u);
  EXPECT_EQ(taken.frames().size(), 2u);
}
#endif

}  // namespace
}  // namespace weft
