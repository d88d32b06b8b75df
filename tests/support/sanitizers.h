#pragma once

// Which sanitizer watches: it makes programs some twenty times as slow and their stack frames several times
// as large.
namespace weft::testing {

#if defined(__has_feature)
#define WEFT_HAS_FEATURE(name) __has_feature(name)
#else
#define WEFT_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || WEFT_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || WEFT_HAS_FEATURE(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitizer;
#endif

#undef WEFT_HAS_FEATURE

}  // namespace weft::testing
