#include "weft/base/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;
constexpr size_t kCacheLine = 64;
// About 50 microseconds: longer than the gap between the kernels of a small model, shorter than anybody
// notices on a machine that has other things to do.
constexpr int kSpins = 2000;

thread_local bool inside_region = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spinning threads beyond the processors only take time from those that work.
bool worth_spinning(int threads) {
  static const int processors = static_cast<int>(std::thread::hardware_concurrency());
  return threads <= processors;
}

// The blocks of one call, on the caller's stack. Each thread begins with the share of the blocks that is its
// own and helps with the others' when that is done: a thread that meets the same arrays in call after call
// reads the part of them that its caches hold, and nobody waits for a thread that is late.
class Job {
 public:
  Job(int64_t begin, int64_t end, int64_t grain, int threads, FunctionRef<void(int64_t, int64_t)> body)
      : begin_(begin), end_(end), grain_(grain), body_(body), scopes_(detail::open_scopes()) {
    uint64_t distance = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
    count_ = distance / grain + (distance % grain != 0);
    shares_ = static_cast<int>(std::min<uint64_t>({count_, static_cast<uint64_t>(threads), kMaxShares}));
    uint64_t size = count_ / shares_, larger = count_ % shares_, first = 0;
    for (int i = 0; i < shares_; ++i) {
      share_[i].first_left = first;
      first += size + (static_cast<uint64_t>(i) < larger);
      share_[i].end = first;
    }
  }

  uint64_t count() const { return count_; }

  // Runs blocks until none is left, those of the share with the thread's number first; false if there was
  // none to begin with.
  bool work(int thread) {
    bool outer = std::exchange(inside_region, true);
    // An error says what the caller was doing, whichever thread it is made on.
    detail::WhileScope* outer_scopes = detail::exchange_scopes(scopes_);
    bool worked = false;
    int own = thread % shares_;
    for (int i = 0; i < shares_; ++i) {
      Share& share = share_[own + i < shares_ ? own + i : own + i - shares_];
      // Looked at first: a share that is done is left alone.
      for (std::atomic_ref next(share.first_left); next.load(std::memory_order_relaxed) < share.end;) {
        uint64_t block = next.fetch_add(1, std::memory_order_relaxed);
        if (block >= share.end || block >= failed_block_.load(std::memory_order_relaxed)) break;
        run(block);
        worked = true;
      }
    }
    detail::exchange_scopes(outer_scopes);
    inside_region = outer;
    return worked;
  }

  void rethrow() {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Enough for one to a thread of a large machine; with more threads some begin in the same share.
  static constexpr int kMaxShares = 64;

  // Plain numbers, which threads use through atomic references: a call writes those of the shares it has.
  struct alignas(kCacheLine) Share {
    uint64_t first_left;
    uint64_t end;
  };

  void run(uint64_t block) noexcept {
    uint64_t first = static_cast<uint64_t>(begin_) + block * static_cast<uint64_t>(grain_);
    uint64_t left = static_cast<uint64_t>(end_) - first;
    uint64_t size = std::min(left, static_cast<uint64_t>(grain_));
    try {
      body_(static_cast<int64_t>(first), static_cast<int64_t>(first + size));
    } catch (...) {
      fail(block, std::current_exception());
    }
  }

  // Blocks after a failing one need not start any more; all before it still run, so that the failure kept in
  // the end is the same one for any number of threads.
  void fail(uint64_t block, std::exception_ptr failure) {
    std::lock_guard lock(failure_mutex_);
    if (block >= failed_block_.load(std::memory_order_relaxed)) return;
    failed_block_.store(block, std::memory_order_relaxed);
    failure_ = std::move(failure);
  }

  int64_t begin_, end_, grain_;
  uint64_t count_;
  int shares_;
  FunctionRef<void(int64_t, int64_t)> body_;
  detail::WhileScope* scopes_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::atomic<uint64_t> failed_block_{std::numeric_limits<uint64_t>::max()};
  Share share_[kMaxShares];
};

// A place where one caller offers a job. `door` counts the workers inside; its top bit says that more may
// enter. The owner shuts the door and leaves, with the job, when nobody is inside: workers that never woke
// up are not waited for.
struct alignas(kCacheLine) Slot {
  static constexpr uint32_t kOpen = 1u << 31;
  std::atomic<bool> taken{false};
  std::atomic<uint32_t> door{0};
  Job* job = nullptr;  // written by the owner while the door is shut
};

class Pool {
 public:
  // Runs the job on the caller and on up to `threads - 1` workers.
  void run(Job& job, int threads) {
    Slot* slot = take_slot();
    if (!slot) {  // more simultaneous callers than slots: the machine is busy enough
      job.work(0);
      return;
    }
    if (workers_.load(std::memory_order_relaxed) < threads - 1) start_workers(threads - 1);
    slot->job = &job;
    slot->door.store(Slot::kOpen, std::memory_order_seq_cst);
    wake(std::min<uint64_t>(job.count() - 1, threads - 1));
    job.work(0);
    slot->door.fetch_and(~Slot::kOpen, std::memory_order_seq_cst);
    wait_until_empty(*slot, threads);
    slot->taken.store(false, std::memory_order_release);
  }

  // Returns when no more than `limit` workers are left.
  void shrink(int limit) {
    std::unique_lock lock(mutex_);
    limit_.store(limit, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    work_came_.notify_all();
    worker_left_.wait(lock, [&] { return workers_.load() <= limit_.load(); });
  }

 private:
  Slot* take_slot() {
    for (Slot& slot : slots_) {
      if (!slot.taken.load(std::memory_order_relaxed) &&
          !slot.taken.exchange(true, std::memory_order_acquire))
        return &slot;
    }
    return nullptr;
  }

  void start_workers(int wanted) {
    std::lock_guard lock(mutex_);
    if (limit_.load() < wanted) limit_.store(wanted);
    worker_left_.notify_all();  // those about to leave stay
    for (int i = workers_.load(); i < wanted; ++i) {
      try {
        // Detached, and the pool is never destroyed: nothing to join can hang at exit.
        std::thread([this, i] { serve(i); }).detach();
      } catch (const std::system_error&) {
        return;  // the system has no more threads to give; the caller does the work
      }
      workers_.store(i + 1);
    }
  }

  // The epoch moves before sleepers are counted, and a worker counts itself before it compares the epoch:
  // one of the two sees the other.
  void wake(uint64_t useful) {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    int sleepers = sleepers_.load(std::memory_order_seq_cst);
    if (sleepers == 0) return;
    {
      std::lock_guard lock(mutex_);
    }  // a worker between its comparison and its sleep holds the mutex
    for (uint64_t i = std::min<uint64_t>(useful, sleepers); i > 0; --i) work_came_.notify_one();
  }

  void serve(int index) {
    pthread_setname_np(pthread_self(), "weft-worker");
    do {
      while (index < limit_.load(std::memory_order_seq_cst)) {
        uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
        if (!visit_slots(index)) await_next(epoch);
      }
    } while (!leave(index));
  }

  // The highest index leaves first, so that the running workers stay 0..n-1. False if the worker is wanted
  // again after all.
  bool leave(int index) {
    std::unique_lock lock(mutex_);
    auto is_last = [&] { return workers_.load() == index + 1; };
    auto is_wanted = [&] { return index < limit_.load(); };
    worker_left_.wait(lock, [&] { return is_wanted() || is_last(); });
    if (is_wanted()) return false;
    workers_.store(index);
    worker_left_.notify_all();
    return true;
  }

  bool visit_slots(int index) {
    bool worked = false;
    for (size_t i = 0; i < slots_.size(); ++i) worked |= visit(slots_[(i + index) % slots_.size()], index);
    return worked;
  }

  bool visit(Slot& slot, int index) {
    uint32_t door = slot.door.load(std::memory_order_relaxed);
    do {
      if (!(door & Slot::kOpen)) return false;
    } while (!slot.door.compare_exchange_weak(door, door + 1, std::memory_order_acquire));
    bool worked = slot.job->work(index + 1);  // the caller is number 0
    if (slot.door.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        waiting_callers_.load(std::memory_order_seq_cst) > 0) {
      std::lock_guard lock(mutex_);
      worker_done_.notify_all();
    }
    return worked;
  }

  void await_next(uint32_t epoch) {
    auto is_new = [&] { return epoch_.load(std::memory_order_seq_cst) != epoch; };
    if (worth_spinning(limit_.load(std::memory_order_relaxed) + 1)) {
      for (int i = 0; i < kSpins; ++i, relax())
        if (is_new()) return;
    }
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    work_came_.wait(lock, is_new);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  void wait_until_empty(Slot& slot, int threads) {
    auto is_empty = [&] { return slot.door.load(std::memory_order_seq_cst) == 0; };
    for (int i = worth_spinning(threads) ? kSpins : 1; i > 0; --i, relax())
      if (is_empty()) return;
    std::unique_lock lock(mutex_);
    waiting_callers_.fetch_add(1, std::memory_order_seq_cst);
    worker_done_.wait(lock, is_empty);
    waiting_callers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  std::array<Slot, 8> slots_;
  alignas(kCacheLine) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> waiting_callers_{0};
  std::atomic<int> workers_{0};  // running workers
  std::atomic<int> limit_{0};    // workers with this index or above leave
  std::mutex mutex_;
  std::condition_variable work_came_, worker_done_, worker_left_;
};

int parse_thread_count(std::string_view text) {
  int n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  bool is_number = error == std::errc() && end == text.data() + text.size();
  require(is_number && n >= 1 && n <= kMaxThreads,
          "WEFT_NUM_THREADS is \"{}\"; expected a whole number from 1 to {}", text, kMaxThreads);
  return n;
}

int default_thread_count() {
  if (const char* text = std::getenv("WEFT_NUM_THREADS"); text && *text) return parse_thread_count(text);
  int processors = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(processors, 1, kMaxThreads);
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count(default_thread_count());
  return count;
}

std::atomic<Pool*> the_pool{nullptr};

// Never destroyed: workers may outlive `main`. A forked child has no workers and perhaps locked mutexes: it
// forgets the pool and makes its own.
Pool& pool() {
  if (Pool* pool = the_pool.load(std::memory_order_acquire)) return *pool;
  static std::mutex making;
  std::lock_guard lock(making);
  if (!the_pool.load()) {
    static const int registered = pthread_atfork([] { making.lock(); }, [] { making.unlock(); },
                                                 [] {
                                                   the_pool.store(nullptr);
                                                   making.unlock();
                                                 });
    invariant(registered == 0, "pthread_atfork failed with code {}", registered);
    the_pool.store(new Pool, std::memory_order_release);
  }
  return *the_pool.load();
}

}  // namespace

bool in_parallel_region() { return inside_region; }

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

int usable_threads() { return inside_region ? 1 : num_threads(); }

void set_num_threads(int n) {
  require(n >= 1 && n <= kMaxThreads, "set_num_threads: {} threads; expected 1 to {}", n, kMaxThreads);
  require(!inside_region,
          "set_num_threads: called inside a parallel_for body, whose threads cannot wait for "
          "themselves; call it before parallel_for");
  thread_count().store(n);
  if (Pool* pool = the_pool.load(std::memory_order_acquire)) pool->shrink(n - 1);
}

void detail::run_blocks(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  require(grain > 0, "parallel_for: a grain of {}; expected at least 1 index a block", grain);
  int threads = usable_threads();
  if (threads == 1) {
    // Written so that no sum passes `end`: it may be the largest integer.
    for (int64_t first = begin; first < end;) {
      uint64_t left = static_cast<uint64_t>(end) - static_cast<uint64_t>(first);
      int64_t last = left <= static_cast<uint64_t>(grain) ? end : first + grain;
      body(first, last);
      first = last;
    }
    return;
  }
  Job job(begin, end, grain, threads, body);
  pool().run(job, threads);
  job.rethrow();
}

}  // namespace weft
