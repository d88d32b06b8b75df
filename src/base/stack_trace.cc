#include "weft/base/stack_trace.h"

#include <fmt/format.h>
#include <pthread.h>

#include "base/call_records.h"
#include "base/source_file.h"
#include "base/symboliser.h"

namespace weft {
namespace {

// What a function compiled with a frame pointer leaves on the stack, on x86-64 and AArch64 alike.
struct CallRecord {
  const CallRecord* caller;
  const void* return_address;
};

struct StackBounds {
  uintptr_t low, high;
  // Whether all of a record at this address can be read.
  bool contains(const CallRecord* record) const {
    const auto at = reinterpret_cast<uintptr_t>(record);
    return at >= low && at < high && high - at >= sizeof(CallRecord) && at % alignof(CallRecord) == 0;
  }
};

StackBounds find_bounds() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 1};
  void* low = nullptr;
  size_t bytes = 0;
  const bool is_found = pthread_attr_getstack(&attributes, &low, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_found) return {0, 1};
  return {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + bytes};
}

constinit thread_local StackBounds thread_stack = {0, 0};

}  // namespace

std::string SourceFrame::place() const {
  if (line != 0) return fmt::format("{}:{}", file, line);
  return function.empty() ? "an unknown place" : function;
}

std::string SourceFrame::to_string() const {
  if (line == 0 || function.empty()) return place();
  return fmt::format("{}:{} in {}", file, line, function);
}

std::string SourceFrame::code() const {
  if (line == 0) return {};
  std::ifstream source = detail::open_source(file, folder);
  std::string text;
  for (uint32_t at = 0; at < line; ++at)
    if (!std::getline(source, text)) return {};
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Code without frame pointers uses their register for something else, so a record may be any word: it is
// followed only outward and only inside the thread's stack, all of which can be read. Sanitizers must not
// judge these reads, which look at other functions' memory.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] size_t detail::follow_calls(
    const void* frame, std::span<const void*> into) noexcept {
  if (thread_stack.high == 0) thread_stack = find_bounds();
  const StackBounds stack = thread_stack;
  const auto* record = static_cast<const CallRecord*>(frame);
  // The caller's own record can be read wherever it is, on the stack of a signal too.
  into[0] = record->return_address;
  size_t count = 1;
  while (count < into.size() && stack.contains(record) && record->caller > record &&
         stack.contains(record->caller)) {
    record = record->caller;
    if (!record->return_address) break;
    into[count++] = record->return_address;
  }
  return count;
}

[[gnu::noinline]] StackTrace StackTrace::capture() noexcept {
  StackTrace trace;
  trace.count_ = detail::follow_calls(__builtin_frame_address(0), trace.addresses_);
  return trace;
}

std::vector<SourceFrame> StackTrace::frames() const {
  std::vector<SourceFrame> all;
  for (const void* address : addresses()) {
    std::vector<SourceFrame> here = detail::symbolise(address);
    all.insert(all.end(), std::move_iterator(here.begin()), std::move_iterator(here.end()));
  }
  return all;
}

SourceFrame detail::user_frame_of(std::span<const void* const> addresses) {
  for (const void* address : addresses)
    for (SourceFrame& frame : symbolise(address))
      if (!frame.is_library) return std::move(frame);
  return {};
}
SourceFrame StackTrace::user_frame() const { return detail::user_frame_of(addresses()); }

std::string StackTrace::to_string() const {
  std::string text;
  for (const SourceFrame& frame : frames())
    if (!frame.is_library) text += fmt::format("{}  at {}", text.empty() ? "" : "\n", frame.to_string());
  return text;
}

}  // namespace weft
