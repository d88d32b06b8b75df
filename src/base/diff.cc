#include "base/diff.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/sequence_matcher.h"

namespace weft {
namespace {

using detail::SequenceMatcher;
using Lines = std::span<const std::string>;

// The character at `at`, which moves behind it. A byte that is not UTF-8 is a character of its own, unlike
// any other.
char32_t next_character(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  bool is_whole = size != 0 && at + size <= text.size();
  char32_t character = size <= 1 ? lead : lead & (0xff >> (size + 1));
  for (size_t i = 1; is_whole && i < size; ++i) {
    is_whole = byte(at + i) >> 6 == 2;
    character = character << 6 | (byte(at + i) & 0x3f);
  }
  at += is_whole ? size : 1;
  return is_whole ? character : 0xdc00 + lead;
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0xa && c <= 0xd) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Calls f(line with its break, size of the break) for each line.
template <typename F>
void for_each_line(std::string_view text, F f) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t character = next_character(text, at);
    if (!is_line_break(character)) continue;
    if (character == '\r' && at < text.size() && text[at] == '\n') ++at;
    f(text.substr(begin, at - begin), at - end);
    begin = at;
  }
  if (begin < text.size()) f(text.substr(begin), 0);
}

// The same number for the same thing, counted from 0.
template <typename Thing>
struct Ids {
  std::unordered_map<Thing, int> known;
  int operator()(const Thing& thing) { return known.try_emplace(thing, known.size()).first->second; }
  size_t size() const { return known.size(); }
};

class Differ {
 public:
  Differ(Lines a, Lines b) : a_{a, {}, {}}, b_{b, {}, {}} {
    Ids<std::string_view> lines;
    Ids<char32_t> characters;
    const int blank = characters(' '), tab = characters('\t');
    for (Side* side : {&a_, &b_})
      for (std::string_view line : side->lines) {
        side->line_ids.push_back(lines(line));
        std::vector<int>& ids = side->character_ids.emplace_back();
        for (size_t at = 0; at < line.size();) ids.push_back(characters(next_character(line, at)));
      }
    line_count_ = lines.size();
    std::vector<char> is_junk(characters.size());
    is_junk[blank] = is_junk[tab] = true;
    characters_ = SequenceMatcher(characters.size(), std::move(is_junk));
  }

  std::string text() {
    SequenceMatcher matcher(line_count_);
    matcher.set_second(b_.line_ids);
    matcher.set_first(a_.line_ids);
    for (const SequenceMatcher::Change& change : matcher.changes()) {
      const Region region = {change.a_begin, change.a_end, change.b_begin, change.b_end};
      change.is_equal ? dump("  ", a_, region.a_begin, region.a_end) : show_change(region);
    }
    return std::move(text_);
  }

 private:
  struct Side {
    Lines lines;
    std::vector<int> line_ids;
    std::vector<std::vector<int>> character_ids;  // of each line
  };
  struct Region {
    size_t a_begin, a_end, b_begin, b_end;
    bool is_one_sided() const { return a_begin == a_end || b_begin == b_end; }
    size_t pairs() const { return (a_end - a_begin) * (b_end - b_begin); }
  };
  struct Pair {
    size_t a, b;
  };
  // The similarities of the pairs of a region that were worked out.
  class Similarities {
   public:
    explicit Similarities(const Region& region) : region_(region), ratios_(region.pairs(), kUnknown) {}
    double& operator()(size_t i, size_t j) {
      return ratios_[(j - region_.b_begin) * (region_.a_end - region_.a_begin) + (i - region_.a_begin)];
    }
    static constexpr double kUnknown = -1;

   private:
    Region region_;
    std::vector<double> ratios_;
  };

  static constexpr size_t kMostPairs = size_t{1} << 18;
  static constexpr double kSimilar = 0.75;
  // Similarity beyond which pairs are compared with each other.
  static constexpr double kNearlySimilar = 0.74;

  void dump(std::string_view prefix, const Side& side, size_t begin, size_t end) {
    for (; begin < end; ++begin) text_.append(prefix).append(side.lines[begin]);
  }

  // The shorter block first: less to remember for who reads it.
  void dump_replaced(const Region& region) {
    const bool is_b_first = region.b_end - region.b_begin < region.a_end - region.a_begin;
    if (is_b_first) dump("+ ", b_, region.b_begin, region.b_end);
    dump("- ", a_, region.a_begin, region.a_end);
    if (!is_b_first) dump("+ ", b_, region.b_begin, region.b_end);
  }

  // Shows the best pair of similar lines side by side, and what is before and after it in the same way.
  void show_change(const Region& region) {
    if (region.is_one_sided() || region.pairs() > kMostPairs) return dump_replaced(region);
    Similarities similarities(region);
    // What is still to be shown, last first: regions, and pairs of lines between them.
    struct Step {
      Region region;
      bool is_pair;
    };
    std::vector<Step> steps = {{region, false}};
    while (!steps.empty()) {
      const auto [part, is_pair] = steps.back();
      steps.pop_back();
      if (is_pair) {
        show_pair({part.a_begin, part.b_begin});
      } else if (part.is_one_sided()) {
        dump_replaced(part);
      } else if (std::optional<Pair> best = best_pair(part, similarities); !best) {
        dump_replaced(part);
      } else {
        steps.push_back({{best->a + 1, part.a_end, best->b + 1, part.b_end}, false});
        steps.push_back({{best->a, best->a + 1, best->b, best->b + 1}, true});
        steps.push_back({{part.a_begin, best->a, part.b_begin, best->b}, false});
      }
    }
  }

  // The two lines that are most similar without being equal; if none are, the first two that are equal.
  std::optional<Pair> best_pair(const Region& region, Similarities& similarities) {
    std::optional<Pair> best, equal;
    double best_ratio = kNearlySimilar;
    for (size_t j = region.b_begin; j < region.b_end; ++j)
      for (size_t i = region.a_begin; i < region.a_end; ++i) {
        if (a_.line_ids[i] == b_.line_ids[j]) {
          if (!equal) equal = {i, j};
          continue;
        }
        double& ratio = similarities(i, j);
        if (ratio == Similarities::kUnknown) ratio = similarity(i, j);
        if (ratio > best_ratio) best_ratio = ratio, best = {i, j};
      }
    return best_ratio < kSimilar ? equal : best;
  }

  // 0 for what is not even nearly similar.
  double similarity(size_t i, size_t j) {
    SequenceMatcher& matcher = match(i, j);
    if (matcher.ratio_by_lengths() <= kNearlySimilar || matcher.ratio_by_counts() <= kNearlySimilar) return 0;
    return matcher.ratio();
  }

  // The matcher of the characters of two lines.
  SequenceMatcher& match(size_t i, size_t j) {
    if (matched_line_ != j) characters_.set_second(b_.character_ids[j]);
    matched_line_ = j;
    characters_.set_first(a_.character_ids[i]);
    return characters_;
  }

  void show_pair(const Pair& pair) {
    const std::string &before = a_.lines[pair.a], &after = b_.lines[pair.b];
    if (a_.line_ids[pair.a] == b_.line_ids[pair.b]) return dump("  ", a_, pair.a, pair.a + 1);
    std::string before_marks, after_marks;
    for (const SequenceMatcher::Change& change : match(pair.a, pair.b).changes()) {
      const size_t removed = change.a_end - change.a_begin, added = change.b_end - change.b_begin;
      const bool is_replaced = removed != 0 && added != 0;
      before_marks.append(removed, change.is_equal ? ' ' : is_replaced ? '^' : '-');
      after_marks.append(added, change.is_equal ? ' ' : is_replaced ? '^' : '+');
    }
    show_marked("- ", before, before_marks);
    show_marked("+ ", after, after_marks);
  }

  // A line and, if there are any, the marks of its characters; white space stays what it is, so that marks
  // stand below what they are about.
  void show_marked(std::string_view prefix, std::string_view line, std::string_view marks) {
    text_.append(prefix).append(line);
    std::string shown;
    size_t end = 0, at = 0;
    for (char mark : marks) {
      const size_t begin = at;
      const char32_t character = next_character(line, at);
      if (mark != ' ') {
        shown += mark;
        end = shown.size();
      } else {
        shown += is_space(character) ? line.substr(begin, at - begin) : " ";
      }
    }
    if (end != 0) text_.append("? ").append(shown, 0, end).append("\n");
  }

  Side a_, b_;
  size_t line_count_ = 0;
  SequenceMatcher characters_{0};
  size_t matched_line_ = SIZE_MAX;  // of b
  std::string text_;
};

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line, size_t) { lines.emplace_back(line); });
  return lines;
}

std::string ndiff(Lines a, Lines b) { return Differ(a, b).text(); }
std::string ndiff(std::string_view a, std::string_view b) { return ndiff(split_lines(a), split_lines(b)); }

std::string indent(std::string_view text) {
  std::string indented;
  for_each_line(text, [&](std::string_view line, size_t break_size) {
    indented.append(indented.empty() ? "\t" : "\n\t").append(line.substr(0, line.size() - break_size));
  });
  return indented;
}

}  // namespace weft
