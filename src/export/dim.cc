#include "weft/export/dim.h"

#include <fmt/format.h>

#include "sym/polynomial.h"
#include "weft/base/error.h"

namespace weft {
namespace {

int64_t mapped(int64_t bound, int64_t scale, int64_t offset) {
  if (bound == sym::ValueRange::kInf || bound == sym::ValueRange::kNegInf) return bound;
  return sym::checked_add(sym::checked_mul(bound, scale), offset);
}

}  // namespace

std::string linear_text(int64_t scale, const std::string& root, int64_t offset) {
  std::string text = scale == 1 ? root : fmt::format("{}*{}", scale, root);
  if (offset > 0) text += fmt::format(" + {}", offset);
  if (offset < 0) text += fmt::format(" - {}", -offset);
  return text;
}

std::string dim_text(const std::string& name, const sym::ValueRange& range, int64_t least_shown) {
  std::string text = fmt::format("Dim('{}'", name);
  if (range.lo >= least_shown) text += fmt::format(", min={}", range.lo);
  if (range.hi != sym::ValueRange::kInf) text += fmt::format(", max={}", range.hi);
  return text + ")";
}

Dim::Dim(std::string name, Range range) {
  require(!name.empty(), "Dim: a dimension needs a name");
  require(range.min >= 0 && range.min <= range.max,
          "Dim('{}'): the range from min = {} to max = {} holds no size; sizes are 0 or more", name,
          range.min, range.max);
  root_ = std::make_shared<const Root>(Root{std::move(name), range});
}

std::string Dim::name() const { return linear_text(scale_, root_->name, offset_); }

sym::ValueRange Dim::range() const {
  return {mapped(root_->range.min, scale_, offset_), mapped(root_->range.max, scale_, offset_)};
}

std::optional<int64_t> Dim::root_value(int64_t size) const {
  const int64_t rest = sym::checked_add(size, -offset_);
  if (rest % scale_ != 0) return std::nullopt;
  return rest / scale_;
}

std::string Dim::to_string() const {
  if (is_derived()) return name();
  std::string text = fmt::format("Dim('{}'", root_->name);
  if (root_->range.min > 0) text += fmt::format(", min={}", root_->range.min);
  if (root_->range.max != kNoLimit) text += fmt::format(", max={}", root_->range.max);
  return text + ")";
}

bool Dim::operator==(const Dim& other) const {
  const bool is_one_root = root_ == other.root_ ||
                           (root_->name == other.root_->name && root_->range.min == other.root_->range.min &&
                            root_->range.max == other.root_->range.max);
  return is_one_root && scale_ == other.scale_ && offset_ == other.offset_;
}

Dim Dim::scaled(int64_t factor) const {
  require(factor > 0, "{}*{}: a size that follows from another grows with it; multiply by 1 or more", factor,
          name());
  return {root_, sym::checked_mul(scale_, factor), sym::checked_mul(offset_, factor)};
}
Dim Dim::shifted(int64_t offset) const { return {root_, scale_, sym::checked_add(offset_, offset)}; }

std::string DimSpec::to_string() const {
  if (dim()) return dim()->to_string();
  if (size()) return std::to_string(*size());
  if (hint()) return *hint() == DimHint::kAuto ? "Dim::AUTO" : "Dim::DYNAMIC";
  return "None";
}

}  // namespace weft
