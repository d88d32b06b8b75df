#include "ops/cpu/stream_copy.h"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weft::cpu {

#if defined(__SSE2__)

void stream_copy(char* dst, const char* src, int64_t bytes) {
  int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(dst) & 15);
  std::memcpy(dst, src, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 16 <= bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
  std::memcpy(dst + i, src + i, static_cast<size_t>(bytes - i));
}

void finish_streams() { _mm_sfence(); }

#else

void stream_copy(char* dst, const char* src, int64_t bytes) {
  std::memcpy(dst, src, static_cast<size_t>(bytes));
}
void finish_streams() {}

#endif

}  // namespace weft::cpu
