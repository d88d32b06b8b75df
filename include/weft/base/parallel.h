#pragma once

#include <cstdint>

#include "weft/base/function_ref.h"

namespace weft {

namespace detail {
void run_blocks(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);
}

// Calls `body(b, e)` for the consecutive blocks of `grain` indices (the last may be shorter) that make up
// [begin, end), on weft's threads, the calling one included. Blocks depend on the arguments only, so a result
// computed a block at a time has the same bits for any number of threads. A single block runs at once on the
// caller; so do all blocks, in order, of a call made inside another call's body. If blocks throw, no further
// ones start, and the exception of the first of them in index order reaches the caller.
//   parallel_for(0, n, 4096, [&](int64_t b, int64_t e) { for (; b < e; ++b) y[b] = f(x[b]); });
inline void parallel_for(int64_t begin, int64_t end, int64_t grain,
                         FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  // Unsigned: the difference may not fit int64.
  if (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) <= static_cast<uint64_t>(grain) && grain > 0)
    body(begin, end);
  else detail::run_blocks(begin, end, grain, body);
}

// True inside the body of a `parallel_for` that was split over threads.
bool in_parallel_region();

// How many threads `parallel_for` uses, the caller included. At first WEFT_NUM_THREADS from the environment,
// or else the number of processors.
int num_threads();
// How many a `parallel_for` that is called here could use: one in a parallel region, else num_threads().
int usable_threads();
// `n` is from 1 to 1024. Waits until surplus workers have left; not to be called from a body.
void set_num_threads(int n);

}  // namespace weft
