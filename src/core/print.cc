// Tensors as text, in PyTorch's layout.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/history_text.h"
#include "core/print.h"
#include "weft/core/printable_box.h"
#include "weft/core/tensor.h"

namespace weft {
namespace {

constexpr int kPrecision = 4;
constexpr int64_t kSummarizeAbove = 1000, kEdgeItems = 3;
constexpr size_t kLineWidth = 80;

Scalar element(const Tensor& t, int64_t position) {
  return visit_dtype(t.dtype(), [&]<typename T>() {
    T value = *(static_cast<const T*>(t.storage()->data()) + position);
    Scalar scalar(value);
    if (t.is_conj() && scalar.is_complex())
      scalar = Complex<double>(scalar.to_complex().re, -scalar.to_complex().im);
    if (t.is_neg()) scalar = scalar.is_complex() ? Scalar(-scalar.to_complex()) : Scalar(-scalar.to_double());
    return scalar;
  });
}

// Which indices of a dim are shown; -1 stands for the dots in between.
std::vector<int64_t> shown(int64_t size, bool summarize) {
  std::vector<int64_t> all;
  bool cut = summarize && size > 2 * kEdgeItems;
  for (int64_t i = 0; i < size; ++i)
    if (!cut || i < kEdgeItems || i >= size - kEdgeItems) all.push_back(i);
    else if (i == kEdgeItems) all.push_back(-1);
  return all;
}

// How the numbers of one tensor are written: with the same width and number of places. Both follow from the
// finite numbers other than zero; the others are written as they come, and may be wider.
class NumberFormat {
 public:
  explicit NumberFormat(const std::vector<double>& values) {
    auto counts = [](double v) { return std::isfinite(v) && v != 0; };
    double largest = 0, smallest = INFINITY;
    for (double v : values) {
      if (!counts(v)) continue;
      largest = std::max(largest, std::abs(v));
      smallest = std::min(smallest, std::abs(v));
      whole_ = whole_ && std::floor(v) == v;
    }
    scientific_ = largest > 0 && (largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4);
    for (double v : values)
      if (counts(v)) width_ = std::max(width_, text(v).size());
  }
  size_t width() const { return width_; }
  std::string text(double v) const {
    if (std::isnan(v)) return "nan";  // whatever its sign
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (scientific_) return fmt::format("{:.{}e}", v, kPrecision);
    return whole_ ? fmt::format("{:.0f}.", v) : fmt::format("{:.{}f}", v, kPrecision);
  }
  std::string padded(double v) const { return fmt::format("{:>{}}", text(v), width_); }

 private:
  bool whole_ = true, scientific_ = false;
  size_t width_ = 1;
};

class Printer {
 public:
  explicit Printer(const Tensor& t) : t_(t), summarize_(t.plain_numel() > kSummarizeAbove) {}

  std::string operator()() {
    collect(0, t_.storage_offset().plain());
    real_.emplace(numbers_);
    if (t_.is_complex()) imaginary_.emplace(imaginary_parts_);
    for (const std::string& word : words_) word_width_ = std::max(word_width_, word.size());
    constexpr size_t indent = std::string_view("tensor([").size();
    return t_.plain_numel() == 0 ? "[]" : body(0, t_.storage_offset().plain(), indent);
  }

 private:
  int64_t size(size_t d) const { return t_.plain_sizes()[d]; }
  int64_t stride(size_t d) const { return t_.plain_strides()[d]; }

  // Reads what will be shown, to learn its width.
  void collect(size_t d, int64_t position) {
    if (d == static_cast<size_t>(t_.dim())) return note(element(t_, position));
    for (int64_t i : shown(size(d), summarize_))
      if (i >= 0) collect(d + 1, position + i * stride(d));
  }
  void note(const Scalar& s) {
    if (s.is_complex()) {
      numbers_.push_back(s.to_complex().re);
      imaginary_parts_.push_back(s.to_complex().im);
    } else if (s.is_floating()) {
      numbers_.push_back(s.to_double());
    } else {
      words_.push_back(s.to_string());
    }
  }
  std::string item(const Scalar& s) const {
    if (s.is_complex()) {
      Complex<double> z = s.to_complex();
      std::string imaginary = imaginary_->text(z.im) + "j";
      return real_->padded(z.re) + (imaginary.front() == '-' ? "" : "+") + imaginary;
    }
    return s.is_floating() ? real_->padded(s.to_double()) : fmt::format("{:>{}}", s.to_string(), word_width_);
  }
  // The columns of one element, with the comma and the space after it.
  size_t element_width() const {
    if (t_.is_complex()) return real_->width() + imaginary_->width() + 3;
    return (t_.is_floating_point() ? real_->width() : word_width_) + 2;
  }
  // Every line but the last holds the same number of elements; the dots count as one.
  std::string row(int64_t position, size_t indent) const {
    size_t last = static_cast<size_t>(t_.dim()) - 1;
    const size_t per_line = std::max<size_t>(1, (kLineWidth - (indent - 1)) / element_width());
    std::string text = "[";
    size_t count = 0;
    for (int64_t i : shown(size(last), summarize_)) {
      if (count > 0) text += count % per_line == 0 ? ",\n" + std::string(indent, ' ') : ", ";
      text += i < 0 ? " ..." : item(element(t_, position + i * stride(last)));
      ++count;
    }
    return text + "]";
  }
  std::string body(size_t d, int64_t position, size_t indent) const {
    if (t_.dim() == 0) return item(element(t_, position));
    if (d + 1 == static_cast<size_t>(t_.dim())) return row(position, indent);
    std::string text = "[", gap(static_cast<size_t>(t_.dim()) - d - 1, '\n');
    gap += std::string(indent, ' ');
    bool first = true;
    for (int64_t i : shown(size(d), summarize_)) {
      if (!first) text += "," + gap;
      text += i < 0 ? "..." : body(d + 1, position + i * stride(d), indent + 1);
      first = false;
    }
    return text + "]";
  }

  const Tensor& t_;
  bool summarize_;
  std::vector<double> numbers_, imaginary_parts_;
  std::vector<std::string> words_;
  std::optional<NumberFormat> real_, imaginary_;
  size_t word_width_ = 1;
};

}  // namespace

// --- what stands beside the values -----------------------------------------------------------------------

std::string (*detail::history_text)(const Tensor&) = nullptr;

std::string detail::close_text(std::string text, const std::vector<std::string>& suffixes, size_t indent) {
  // npos + 1 is 0: a text of one line. PyTorch counts two columns more than the line has.
  size_t column = text.size() - (text.rfind('\n') + 1) + 2;
  for (const std::string& suffix : suffixes) {
    const bool is_full = column + suffix.size() + 2 > kLineWidth;
    text += (is_full ? ",\n" + std::string(indent, ' ') : ", ") + suffix;
    column = (is_full ? indent : column + 2) + suffix.size();
  }
  return text + ")";
}

void detail::add_device(std::vector<std::string>& suffixes, const Tensor& tensor) {
  if (!tensor.device().is_cpu()) suffixes.push_back(fmt::format("device='{}'", tensor.device().to_string()));
}

void detail::add_history(std::vector<std::string>& suffixes, const Tensor& tensor) {
  if (tensor.requires_grad() && history_text) suffixes.push_back(history_text(tensor));
}

namespace {

// "(2, 3)", "(2,)": sizes as PyTorch prints them.
std::string size_tuple(const Tensor& tensor) {
  std::string text = describe_sizes(tensor.sizes());
  text.front() = '(';
  text.back() = tensor.dim() == 1 ? ',' : ')';
  return tensor.dim() == 1 ? text + ")" : text;
}

}  // namespace

std::string Tensor::to_string() const {
  if (!defined()) return "tensor(undefined)";
  if (const auto* box = dynamic_cast<const PrintableBox*>(impl()->box.get())) return box->text_of(*this);
  const bool is_emptied = !storage()->data() && plain_numel() > 0;
  const bool has_values = storage()->has_memory() && !is_symbolic() && !impl()->box && !is_emptied;
  const bool is_empty = has_values && plain_numel() == 0;
  const std::string name = impl()->flags() & layer::kFake ? "FakeTensor(" : "tensor(";
  std::vector<std::string> suffixes;
  detail::add_device(suffixes, *this);
  if (!has_values || (is_empty && dim() != 1)) suffixes.push_back("size=" + size_tuple(*this));
  // A type that the values do not show.
  const bool is_shown = dtype() == kInt64 || dtype() == kBool || dtype() == kComplex64;
  if (dtype() != kFloat32 && (!is_shown || !has_values || is_empty))
    suffixes.push_back(fmt::format("dtype=torch.{}", dtype_name(dtype())));
  detail::add_history(suffixes, *this);
  return detail::close_text(name + (has_values ? Printer(*this)() : "..."), suffixes, name.size());
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.to_string(); }

}  // namespace weft
