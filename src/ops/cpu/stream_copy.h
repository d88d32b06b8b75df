#pragma once

#include <cstdint>

namespace weft::cpu {

// Results of this size and more leave nothing of themselves in the caches: they are written around them,
// which saves reading the memory that is about to be overwritten.
inline constexpr int64_t kStreamBytes = int64_t{32} << 20;

// Copies bytes to memory around the caches. Other threads see them after a `finish_streams` of this thread.
void stream_copy(char* dst, const char* src, int64_t bytes);
void finish_streams();

// Asks for bytes that are read soon. With what a later block reads, before the result of this one is written,
// reading and writing overlap, and no page begins with a wait: the processor by itself stops at the end of
// each.
[[gnu::always_inline]] inline void prefetch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

}  // namespace weft::cpu
