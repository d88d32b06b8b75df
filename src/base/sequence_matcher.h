#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weft::detail {

// Finds what two sequences have in common by the rule of Ratcliff and Obershelp: the longest run of equal
// elements, then the same on both sides of it. Elements are small numbers (ids); the caller gives equal
// elements equal ids. Made for one second sequence and many first ones. Gives what Python's
// difflib.SequenceMatcher gives.
class SequenceMatcher {
 public:
  using Sequence = std::span<const int>;
  // a[a_at, a_at + size) equals b[b_at, b_at + size)
  struct Block {
    size_t a_at, b_at, size;
  };
  // a[a_begin, a_end) becomes b[b_begin, b_end)
  struct Change {
    bool is_equal;
    size_t a_begin, a_end, b_begin, b_end;
  };

  // For ids below `id_count`. A run neither begins nor ends with an element that is junk, if it can be
  // helped.
  explicit SequenceMatcher(size_t id_count, std::vector<char> is_junk = {});

  void set_first(Sequence a) { a_ = a; }
  void set_second(Sequence b);

  // What is in common, in order; adjacent blocks are one.
  std::vector<Block> blocks();
  // What to do to make `b` of `a`, in order.
  std::vector<Change> changes();
  // Twice the number of elements in common, divided by the number of all.
  double ratio();
  // Bounds from above, found faster than the ratio.
  double ratio_by_counts();
  double ratio_by_lengths() const;

 private:
  struct Region {
    size_t a_begin, a_end, b_begin, b_end;
  };
  Block longest(const Region& region);
  void grow(Block& block, const Region& region, bool by_junk) const;
  double as_ratio(size_t matches) const;

  Sequence a_, b_;
  std::vector<char> is_junk_;
  std::vector<std::vector<size_t>> positions_;  // by id: where in b it is, unless it is junk or too frequent
  std::vector<size_t> b_count_;                 // by id: how often it is in b
  std::vector<size_t> used_;                    // by id, scratch of ratio_by_counts; all zero between calls
  std::vector<size_t> run_, next_run_;          // scratch of longest; all zero between calls
};

}  // namespace weft::detail
