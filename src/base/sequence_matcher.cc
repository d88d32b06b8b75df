#include "base/sequence_matcher.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft::detail {

SequenceMatcher::SequenceMatcher(size_t id_count, std::vector<char> is_junk)
    : is_junk_(std::move(is_junk)), positions_(id_count), b_count_(id_count), used_(id_count) {
  is_junk_.resize(id_count);
}

void SequenceMatcher::set_second(Sequence b) {
  for (int id : b_) {
    positions_[id].clear();
    b_count_[id] = 0;
  }
  b_ = b;
  for (size_t at = 0; at < b.size(); ++at) {
    positions_[b[at]].push_back(at);
    ++b_count_[b[at]];
  }
  // In a long sequence, elements that make up more than a hundredth of it start no run: they would make
  // the search slow, and say little.
  const size_t most = b.size() >= 200 ? b.size() / 100 + 1 : b.size();
  for (int id : b)
    if (is_junk_[id] || b_count_[id] > most) positions_[id].clear();
  run_.assign(b.size() + 1, 0);
  next_run_.assign(b.size() + 1, 0);
}

// The longest run without junk and frequent elements; of several, the first in a, and then in b. It is then
// made longer by frequent elements, and last by junk.
SequenceMatcher::Block SequenceMatcher::longest(const Region& region) {
  Block best = {region.a_begin, region.b_begin, 0};
  for (size_t i = region.a_begin; i < region.a_end; ++i) {
    // run_[j + 1] is the length of the run that ends with a[i - 1] and b[j].
    for (size_t j : positions_[a_[i]]) {
      if (j < region.b_begin) continue;
      if (j >= region.b_end) break;
      const size_t size = next_run_[j + 1] = run_[j] + 1;
      if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
    }
    if (i > region.a_begin)
      for (size_t j : positions_[a_[i - 1]]) run_[j + 1] = 0;
    std::swap(run_, next_run_);
  }
  if (region.a_end > region.a_begin)
    for (size_t j : positions_[a_[region.a_end - 1]]) run_[j + 1] = 0;
  grow(best, region, false);
  grow(best, region, true);
  return best;
}

void SequenceMatcher::grow(Block& block, const Region& region, bool by_junk) const {
  auto fits = [&](size_t i, size_t j) { return a_[i] == b_[j] && bool(is_junk_[b_[j]]) == by_junk; };
  while (block.a_at > region.a_begin && block.b_at > region.b_begin && fits(block.a_at - 1, block.b_at - 1))
    --block.a_at, --block.b_at, ++block.size;
  while (block.a_at + block.size < region.a_end && block.b_at + block.size < region.b_end &&
         fits(block.a_at + block.size, block.b_at + block.size))
    ++block.size;
}

std::vector<SequenceMatcher::Block> SequenceMatcher::blocks() {
  std::vector<Block> found;
  std::vector<Region> pending = {{0, a_.size(), 0, b_.size()}};
  while (!pending.empty()) {
    const Region region = pending.back();
    pending.pop_back();
    const Block block = longest(region);
    if (block.size == 0) continue;
    found.push_back(block);
    const Region before = {region.a_begin, block.a_at, region.b_begin, block.b_at};
    const Region after = {block.a_at + block.size, region.a_end, block.b_at + block.size, region.b_end};
    for (const Region& rest : {before, after})
      if (rest.a_begin < rest.a_end && rest.b_begin < rest.b_end) pending.push_back(rest);
  }
  std::sort(found.begin(), found.end(), [](const Block& x, const Block& y) {
    return std::tie(x.a_at, x.b_at) < std::tie(y.a_at, y.b_at);
  });
  std::vector<Block> merged;
  for (const Block& block : found) {
    Block* last = merged.empty() ? nullptr : &merged.back();
    if (last && last->a_at + last->size == block.a_at && last->b_at + last->size == block.b_at)
      last->size += block.size;
    else merged.push_back(block);
  }
  return merged;
}

std::vector<SequenceMatcher::Change> SequenceMatcher::changes() {
  std::vector<Change> all;
  size_t i = 0, j = 0;
  auto change_until = [&](size_t a_end, size_t b_end) {
    if (i < a_end || j < b_end) all.push_back({false, i, a_end, j, b_end});
  };
  for (const Block& block : blocks()) {
    change_until(block.a_at, block.b_at);
    i = block.a_at + block.size, j = block.b_at + block.size;
    all.push_back({true, block.a_at, i, block.b_at, j});
  }
  change_until(a_.size(), b_.size());
  return all;
}

double SequenceMatcher::as_ratio(size_t matches) const {
  const size_t total = a_.size() + b_.size();
  return total == 0 ? 1.0 : 2.0 * static_cast<double>(matches) / static_cast<double>(total);
}

double SequenceMatcher::ratio() {
  size_t matches = 0;
  for (const Block& block : blocks()) matches += block.size;
  return as_ratio(matches);
}

double SequenceMatcher::ratio_by_counts() {
  size_t matches = 0;
  for (int id : a_) matches += used_[id]++ < b_count_[id];
  for (int id : a_) used_[id] = 0;
  return as_ratio(matches);
}

double SequenceMatcher::ratio_by_lengths() const { return as_ratio(std::min(a_.size(), b_.size())); }

}  // namespace weft::detail
