#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

// oneDNN as weft uses it: single-threaded primitives that weft's own threads run on blocks.
namespace weft::cpu::onednn {

using Desc = dnnl::memory::desc;

const dnnl::engine& engine();
// Primitives get their working memory from weft, so that any thread may run any of them.
const dnnl::primitive_attr& attributes();

// While it lasts, the calling thread's OpenMP regions, and the primitives it makes, have one thread.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

struct Argument {
  int which;  // DNNL_ARG_...
  const Desc& desc;
  const void* data;
};
// Runs on the calling thread and waits. `scratch` is what the primitive asked for.
void run(const dnnl::primitive& primitive, const Desc& scratch, std::span<const Argument> arguments);

// A copy from one layout of the same array to another. Nothing to do when the layouts are the same.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Desc& from, const Desc& to);
  bool is_needed() const { return static_cast<bool>(primitive_); }
  void operator()(const float* from, float* to) const;

 private:
  Desc from_, to_, scratch_;
  dnnl::primitive primitive_;
};

// Things that are costly to make, by all the numbers that describe them. Keeps those used last; one that
// cannot be made is kept as null. Safe for several threads.
using PlanKey = std::vector<int64_t>;
struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const noexcept {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const int64_t number : key) hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3u;
    return hash ^ (hash >> 29);
  }
};
template <typename Plan>
class PlanCache {
 public:
  explicit PlanCache(size_t limit) : limit_(limit) {}

  template <typename Make>
  std::shared_ptr<const Plan> find_or_make(const PlanKey& key, const Make& make) {
    std::lock_guard lock(mutex_);
    if (const auto found = places_.find(key); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().second;
    }
    entries_.emplace_front(key, make());
    places_[key] = entries_.begin();
    if (entries_.size() > limit_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

 private:
  using Entry = std::pair<PlanKey, std::shared_ptr<const Plan>>;
  const size_t limit_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<PlanKey, typename std::list<Entry>::iterator, PlanKeyHash> places_;
};

}  // namespace weft::cpu::onednn
