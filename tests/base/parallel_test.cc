#include "weft/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/expect_error.h"
#include "support/sanitizers.h"

namespace weft {
namespace {

using Blocks = std::set<std::pair<int64_t, int64_t>>;

class Parallel : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};
INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 3, 8, 16));

Blocks blocks_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Blocks blocks;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard lock(mutex);
    EXPECT_TRUE(blocks.emplace(b, e).second) << "block " << b << " ran twice";
  });
  return blocks;
}

TEST_P(Parallel, BlocksDependOnTheRangeOnly) {
  EXPECT_EQ(blocks_of(0, 10, 4), (Blocks{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(blocks_of(-3, 3, 3), (Blocks{{-3, 0}, {0, 3}}));
  EXPECT_EQ(blocks_of(5, 6, 1), (Blocks{{5, 6}}));
  EXPECT_EQ(blocks_of(5, 5, 1), Blocks{});
  EXPECT_EQ(blocks_of(6, 5, 1), Blocks{});
}

TEST_P(Parallel, RangesAtTheEndsOfTheIntegersDoNotOverflow) {
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min(), highest = -1 - lowest;
  EXPECT_EQ(blocks_of(lowest, highest, highest),
            (Blocks{{lowest, -1}, {-1, highest - 1}, {highest - 1, highest}}));
  EXPECT_EQ(blocks_of(highest - 5, highest, 4), (Blocks{{highest - 5, highest - 1}, {highest - 1, highest}}));
}

TEST_P(Parallel, EveryIndexIsVisitedOnce) {
  for (int64_t n : {1, 2, 7, 100, 1000, 4096}) {
    for (int64_t grain : {1, 3, 64, 5000}) {
      std::vector<int> visits(n, 0);
      parallel_for(0, n, grain, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) ++visits[b];
      });
      EXPECT_EQ(visits, std::vector<int>(n, 1)) << "n " << n << ", grain " << grain;
    }
  }
}

TEST_P(Parallel, ManyShortCallsInARowSeeEachOthersWrites) {
  std::vector<int64_t> values(64, 0);
  for (int round = 0; round < 2000; ++round)
    parallel_for(0, 64, 8, [&](int64_t b, int64_t e) {
      for (; b < e; ++b) values[b] += b;
    });
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], 2000 * i);
}

TEST_P(Parallel, ASingleBlockRunsOnTheCallerOutsideARegion) {
  auto caller = std::this_thread::get_id();
  parallel_for(0, 100, 100, [&](int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_FALSE(in_parallel_region());
  });
}

TEST_P(Parallel, NestedCallsRunInOrderOnTheirThread) {
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    auto thread = std::this_thread::get_id();
    std::vector<int64_t> starts;
    parallel_for(0, 10, 3, [&](int64_t b, int64_t) {
      EXPECT_TRUE(num_threads() == 1 || std::this_thread::get_id() == thread);
      starts.push_back(b);
    });
    EXPECT_EQ(starts, (std::vector<int64_t>{0, 3, 6, 9}));
  });
  EXPECT_FALSE(in_parallel_region());
}

TEST_P(Parallel, TheFirstFailureInIndexOrderReachesTheCaller) {
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(0, 1000, 1, [](int64_t b, int64_t) {
        if (b >= 3) throw std::runtime_error(std::to_string(b));
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
  }
}

// A thread that fails in a share leaves it, so each runs one block of each share at the most, however the
// system schedules them.
TEST_P(Parallel, AFailureStopsTheRestEarly) {
  std::atomic<int64_t> ran{0};
  EXPECT_THROW(parallel_for(0, 1'000'000, 1,
                            [&](int64_t, int64_t) {
                              ++ran;
                              throw std::runtime_error("stop");
                            }),
               std::runtime_error);
  EXPECT_LE(ran.load(), int64_t{GetParam()} * GetParam());
}

TEST_P(Parallel, ThePoolWorksAfterAFailure) {
  EXPECT_THROW(parallel_for(0, 100, 1, [](int64_t, int64_t) { throw 7; }), int);
  EXPECT_FALSE(in_parallel_region());
  EXPECT_EQ(blocks_of(0, 10, 4), (Blocks{{0, 4}, {4, 8}, {8, 10}}));
}

TEST_P(Parallel, ManyUserThreadsAtOnce) {
  std::vector<std::thread> users;
  std::atomic<int64_t> total{0};
  for (int user = 0; user < 12; ++user)
    users.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        parallel_for(0, 100, 7, [&](int64_t b, int64_t e) { total += e - b; });
    });
  for (std::thread& user : users) user.join();
  EXPECT_EQ(total.load(), 12 * 100 * 100);
}

TEST(ParallelPool, BlocksRunAtTheSameTimeOnSeveralThreads) {
  int before = num_threads();
  set_num_threads(4);
  // Four blocks that wait for one another can only finish if four threads run them.
  std::atomic<int> inside{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    ++inside;
    while (inside.load() < 4) std::this_thread::yield();
    EXPECT_TRUE(in_parallel_region());
    EXPECT_EQ(usable_threads(), 1);
  });
  EXPECT_EQ(inside.load(), 4);
  EXPECT_EQ(usable_threads(), 4);
  set_num_threads(before);
}

TEST(ParallelPool, ErrorsOfWorkersNameTheScopesOfTheCaller) {
  int before = num_threads();
  set_num_threads(2);
  auto caller = std::this_thread::get_id();
  While scope([] { return std::string("adding up"); });
  std::atomic<int> inside{0};
  EXPECT_ERROR(parallel_for(0, 2, 1,
                            [&](int64_t, int64_t) {
                              ++inside;
                              while (inside.load() < 2) std::this_thread::yield();
                              if (std::this_thread::get_id() != caller) fail("too large");
                            }),
               "too large\n  while adding up");
  set_num_threads(before);
}

TEST(ParallelPool, TheNumberOfThreadsCanChangeWhileOthersCall) {
  int before = num_threads();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> bad{0};
  std::thread user([&] {
    while (!stop) {
      std::atomic<int64_t> sum{0};
      parallel_for(0, 100, 3, [&](int64_t b, int64_t e) { sum += e - b; });
      if (sum != 100) ++bad;
    }
  });
  for (int round = 0; round < 40; ++round) set_num_threads(1 + round % 5);
  stop = true;
  user.join();
  EXPECT_EQ(bad.load(), 0);
  set_num_threads(before);
}

TEST(ParallelPool, RefusesCountsOutOfRange) {
  EXPECT_USER_ERROR(set_num_threads(0), "set_num_threads: 0 threads; expected 1 to 1024");
  EXPECT_USER_ERROR(set_num_threads(1025), "set_num_threads: 1025 threads; expected 1 to 1024");
  EXPECT_GE(num_threads(), 1);
}

TEST(ParallelPool, RefusesAGrainBelowOne) {
  auto nothing = [](int64_t, int64_t) {};
  EXPECT_USER_ERROR(parallel_for(0, 4, 0, nothing), "parallel_for: a grain of 0; expected at least 1");
  EXPECT_USER_ERROR(parallel_for(0, 4, -2, nothing), "parallel_for: a grain of -2");
}

TEST(ParallelPool, RefusesToChangeTheThreadsFromABody) {
  int before = num_threads();
  set_num_threads(2);
  EXPECT_USER_ERROR(parallel_for(0, 2, 1, [](int64_t, int64_t) { set_num_threads(1); }),
                    "set_num_threads: called inside a parallel_for body");
  set_num_threads(before);
}

// The parent of a forked child has threads and the child has none: it must neither hang nor crash.
TEST(ParallelPool, AForkedChildMakesItsOwnThreadsAndExits) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "TSan does not start threads after a fork";
  int before = num_threads();
  set_num_threads(3);
  EXPECT_EQ(blocks_of(0, 10, 4).size(), 3u);
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    parallel_for(0, 1000, 1, [&](int64_t b, int64_t) { sum += b; });
    _exit(sum == 499500 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  set_num_threads(before);
}

}  // namespace
}  // namespace weft
