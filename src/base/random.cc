#include "weft/base/random.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {
namespace {

thread_local RandomScope* innermost_random = nullptr;

}  // namespace

Generator::Generator(uint64_t seed) : data_(make_ref<detail::GeneratorData>()) { data_->state.seed = seed; }

void Generator::manual_seed(uint64_t seed) { set_state({.seed = seed, .offset = 0}); }
uint64_t Generator::seed() const { return state().seed; }
uint64_t Generator::offset() const { return state().offset; }
uint64_t Generator::advance(uint64_t blocks) { return reserve(blocks).offset; }

RandomStream Generator::reserve(uint64_t blocks) {
  std::lock_guard lock(data_->mutex);
  RandomStream stream{data_->state.seed, data_->state.offset};
  data_->state.offset += blocks;
  return stream;
}

GeneratorState Generator::state() const {
  std::lock_guard lock(data_->mutex);
  return data_->state;
}

void Generator::set_state(const GeneratorState& state) {
  std::lock_guard lock(data_->mutex);
  data_->state = state;
}

Generator Generator::clone() const {
  Generator copy;
  copy.set_state(state());
  return copy;
}

Generator& default_generator() {
  static Generator& generator = *new Generator;  // never destroyed: static objects may still draw
  return generator;
}

Generator& default_generator(const Device& device) {
  require(device.type != DeviceType::kMeta, "default_generator: {} has no data, and so no generator",
          device.to_string());
  return default_generator();
}

ForkRng fork_rng(const std::vector<Device>& devices) {
  std::vector<Generator> generators = {default_generator()};
  for (const Device& device : devices)
    if (const Generator& own = default_generator(device);
        std::find(generators.begin(), generators.end(), own) == generators.end())
      generators.push_back(own);
  return ForkRng(generators);
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

RandomScope::RandomScope(const RandomStream& stream)
    : next_(stream), outer_(std::exchange(innermost_random, this)) {}
RandomScope::~RandomScope() { innermost_random = outer_; }
bool RandomScope::is_open() { return innermost_random != nullptr; }

RandomStream reserve_random(uint64_t blocks) {
  if (!innermost_random) return default_generator().reserve(blocks);
  RandomStream stream = innermost_random->next_;
  innermost_random->next_.offset += blocks;
  return stream;
}

RandomStream next_random() {
  return innermost_random ? innermost_random->next_ : default_generator().reserve(0);
}

}  // namespace weft
