#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/device.h"
#include "weft/base/ref.h"

namespace weft {

// ---- the function
// ------------------------------------------------------------------------------------------

using PhiloxBlock = std::array<uint32_t, 4>;

// Philox 4x32-10 (Salmon et al., 2011): four random words for each (seed, counter, subsequence).
constexpr PhiloxBlock philox4x32(uint64_t seed, uint64_t counter, uint64_t subsequence = 0) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxBlock x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                   static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

// ---- numbers from words
// ------------------------------------------------------------------------------------

// [0, 1) with 24 random bits.
constexpr float uniform24(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
// [0, 1) with 53 random bits.
constexpr double uniform53(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }
// One of 0 ... range - 1, or any integer for a range of 0. The bias is below range / 2^64.
constexpr uint64_t bounded(uint64_t word, uint64_t range) {
  if (range == 0) return word;
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(word) * range) >> 64);
}

template <typename T>
struct NormalPair {
  T first, second;
};
// Two independent standard normal numbers (Box-Muller). All bits of the first word are used: the tails of
// floats reach 6.7 standard deviations.
inline NormalPair<float> normal_pair(uint32_t a, uint32_t b) {
  float radius = std::sqrt(-2.0f * std::log((static_cast<float>(a) + 0.5f) * 0x1p-32f));
  float angle = 6.2831853f * uniform24(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}
inline NormalPair<double> normal_pair(uint64_t a, uint64_t b) {
  double radius = std::sqrt(-2.0 * std::log(1.0 - uniform53(a)));
  double angle = 6.283185307179586477 * uniform53(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// ---- numbers of elements
// -----------------------------------------------------------------------------------

// Where a kernel's numbers come from. The number of element `i` depends on (seed, offset, i) only, so that
// any split over threads or vectors gives the same bits. A block of Philox serves four elements that need a
// word each, or two that need two; offsets count blocks. A draw of n elements takes n blocks from its
// generator, whatever they need of them: what it takes follows from sizes alone.
struct RandomStream {
  uint64_t seed = 0, offset = 0;

  constexpr PhiloxBlock block(uint64_t index) const { return philox4x32(seed, offset + index); }
  // Element i of a kernel that needs one word an element.
  constexpr uint32_t word32(uint64_t i) const { return block(i / 4)[i % 4]; }
  // Element i of a kernel that needs two words an element.
  constexpr uint64_t word64(uint64_t i) const {
    PhiloxBlock words = block(i / 2);
    return words[i % 2 * 2] | static_cast<uint64_t>(words[i % 2 * 2 + 1]) << 32;
  }
  constexpr float uniform_float(uint64_t i) const { return uniform24(word32(i)); }
  constexpr double uniform_double(uint64_t i) const { return uniform53(word64(i)); }
  constexpr uint64_t integer_below(uint64_t i, uint64_t range) const { return bounded(word64(i), range); }
  // Four floats (two doubles) come from one block: neighbours are the two numbers of a pair.
  float normal_float(uint64_t i) const {
    PhiloxBlock words = block(i / 4);
    NormalPair<float> pair = normal_pair(words[i % 4 / 2 * 2], words[i % 4 / 2 * 2 + 1]);
    return i % 2 == 0 ? pair.first : pair.second;
  }
  double normal_double(uint64_t i) const {
    NormalPair<double> pair = normal_pair(word64(i / 2 * 2), word64(i / 2 * 2 + 1));
    return i % 2 == 0 ? pair.first : pair.second;
  }
};

// ---- generators
// --------------------------------------------------------------------------------------------

struct GeneratorState {
  uint64_t seed = 0, offset = 0;
  bool operator==(const GeneratorState&) const = default;
};

inline constexpr uint64_t kDefaultSeed = 67280421310721;

namespace detail {
struct GeneratorData : RefCounted {
  mutable std::mutex mutex;
  GeneratorState state;
};
}  // namespace detail

// A seed and the position reached, shared by all copies of the handle. Safe to use from several threads.
class Generator {
 public:
  explicit Generator(uint64_t seed = kDefaultSeed);

  // Starts again from `seed` and offset 0.
  void manual_seed(uint64_t seed);
  uint64_t seed() const;
  uint64_t offset() const;
  // Reserves the next `blocks` and returns the offset of the first.
  uint64_t advance(uint64_t blocks);
  // The same with the seed, read together: what a kernel needs.
  RandomStream reserve(uint64_t blocks);
  GeneratorState state() const;
  void set_state(const GeneratorState& state);
  // A generator of its own with the same state.
  Generator clone() const;
  // Whether both handles are of one generator.
  bool operator==(const Generator&) const = default;

 private:
  Ref<detail::GeneratorData> data_;
};

// The generator that random operators use when they are given none.
Generator& default_generator();
// The same for operators on a device: all devices draw from one generator.
Generator& default_generator(const Device& device);
// Seeds the default generator.
void manual_seed(uint64_t seed);

// While it lives, operators of this thread that are given no generator draw the numbers from `stream` on, and
// the default generator stays where it is. A graph that runs gives each of its random nodes the numbers that
// were the node's when it was captured.
class [[nodiscard]] RandomScope {
 public:
  explicit RandomScope(const RandomStream& stream);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  // Whether this thread is inside one.
  static bool is_open();

 private:
  friend RandomStream reserve_random(uint64_t blocks);
  friend RandomStream next_random();
  RandomStream next_;
  RandomScope* outer_;
};
// The next `blocks` for an operator that is given no generator.
RandomStream reserve_random(uint64_t blocks);
// Where the next such operator will begin.
RandomStream next_random();

// Puts generators back, at the end of the scope, to where they were at its start.
class [[nodiscard]] ForkRng {
 public:
  explicit ForkRng(const Generator& generator) : ForkRng(std::vector{generator}) {}
  explicit ForkRng(const std::vector<Generator>& generators) {
    for (const Generator& generator : generators) saved_.emplace_back(generator, generator.state());
  }
  ~ForkRng() {
    for (auto& [generator, state] : saved_) generator.set_state(state);
  }
  ForkRng(const ForkRng&) = delete;
  ForkRng& operator=(const ForkRng&) = delete;

 private:
  std::vector<std::pair<Generator, GeneratorState>> saved_;
};
//   auto scope = fork_rng();  // what is drawn here leaves the default generator as it was
inline ForkRng fork_rng() { return ForkRng(default_generator()); }
// The same for the CPU and these devices.
ForkRng fork_rng(const std::vector<Device>& devices);

}  // namespace weft
