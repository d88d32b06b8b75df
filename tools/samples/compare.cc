#include "samples/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace weft::recorded {
namespace {

template <typename T>
void append(Elements& elements, T value, bool conjugate, bool negative) {
  if constexpr (std::integral<T>) {
    elements.integers.push_back(negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value));
  } else {
    Complex<double> number;
    if constexpr (std::same_as<T, Complex<float>> || std::same_as<T, Complex<double>>)
      number = Complex<double>(value);
    else number = static_cast<double>(value);
    if (conjugate) number.im = -number.im;
    elements.numbers.push_back(negative ? -number : number);
  }
}

template <typename T>
void read_strided(const Tensor& tensor, Elements& elements) {
  IntSpan sizes = tensor.plain_sizes(), strides = tensor.plain_strides();
  const T* data = static_cast<const T*>(tensor.raw_data());
  Ints index;
  for (size_t d = 0; d < sizes.size(); ++d) index.push_back(0);
  int64_t at = 0;
  for (int64_t left = tensor.plain_numel(); left > 0; --left) {
    append(elements, data[at], tensor.is_conj(), tensor.is_neg());
    for (size_t d = sizes.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

// Beside an element that is no more than a thousand times as large, noise says nothing of the element.
constexpr double kLargeNoise = 1e-3;

Tolerance tolerance_of(DType dtype) {
  switch (real_type(dtype)) {
    case DType::kFloat64:
      return {1e-7, 1e-7};
    case DType::kFloat32:
      return {1.3e-6, 1e-5};
    case DType::kFloat16:
      return {1e-3, 1e-5};
    default:
      return {1.6e-2, 1e-5};
  }
}

// An infinite part must be the same infinity; finite parts count in the distance.
bool same_number(Complex<double> got, Complex<double> stored, Tolerance tolerance) {
  bool got_nan = std::isnan(got.re) || std::isnan(got.im),
       stored_nan = std::isnan(stored.re) || std::isnan(stored.im);
  if (got_nan || stored_nan) return got_nan && stored_nan;
  for (double Complex<double>::* part : {&Complex<double>::re, &Complex<double>::im}) {
    if (std::isfinite(got.*part) && std::isfinite(stored.*part)) continue;
    if (got.*part != stored.*part) return false;
    got.*part = stored.*part = 0;
  }
  double distance = std::hypot(got.re - stored.re, got.im - stored.im);
  return distance <= tolerance.absolute + tolerance.relative * std::hypot(stored.re, stored.im);
}

double magnitude(Complex<double> number) {
  return std::isfinite(number.re) && std::isfinite(number.im) ? std::hypot(number.re, number.im) : 0;
}

std::string place_of(size_t i, IntSpan sizes) {
  Ints index(sizes);
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(i) % sizes[d];
    i /= static_cast<size_t>(sizes[d]);
  }
  return describe_sizes(IntSpan(index)).str();
}

std::vector<int64_t> integers(const Json& list) {
  std::vector<int64_t> result;
  for (const Json& element : list.as_array()) result.push_back(element.as_int());
  return result;
}

bool same_plain(const Value& got, const Value& stored) {
  if (got.kind() == Value::Kind::kDouble && stored.kind() == Value::Kind::kDouble)
    return got.to_double() == stored.to_double() ||
           (std::isnan(got.to_double()) && std::isnan(stored.to_double()));
  return got == stored;
}

// What the noise was measured from is no further than that from what is stored: if it is, it is another
// answer.
std::optional<Elements> confirmed(std::optional<Elements> exact, const Elements& stored, double noise) {
  if (!exact || stored.is_exact() || exact->is_exact() || exact->count() != stored.count())
    return std::nullopt;
  for (size_t i = 0; i < stored.count(); ++i)
    if (magnitude(stored.numbers[i] - exact->numbers[i]) > 1.01 * noise) return std::nullopt;
  return exact;
}

// The distance from one number to the next, relative to it.
double epsilon_of(DType dtype) {
  switch (real_type(dtype)) {
    case DType::kFloat64:
      return 0x1p-52;
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

// Whether `got` is no further from the exact number than `stored` is, or than the largest element is from the
// next number of the type.
bool is_as_close(const Elements& got, const Elements& stored, const Elements& exact, size_t i) {
  auto distance = [&](const Elements& from) { return magnitude(from.numbers[i] - exact.numbers[i]); };
  auto is_finite = [&](const Elements& from) {
    return std::isfinite(from.numbers[i].re) && std::isfinite(from.numbers[i].im);
  };
  if (!is_finite(got) || !is_finite(stored) || !is_finite(exact)) return false;
  double largest = 0;
  for (const Complex<double>& number : exact.numbers) largest = std::max(largest, magnitude(number));
  return distance(got) <= std::max(distance(stored), epsilon_of(stored.dtype) * largest);
}

}  // namespace

std::string Elements::text(size_t i) const {
  if (dtype == kBool) return integers[i] ? "true" : "false";
  if (is_exact()) return std::to_string(integers[i]);
  if (!is_complex(dtype)) return fmt::format("{}", numbers[i].re);
  return fmt::format("{}{:+}j", numbers[i].re, numbers[i].im);
}

Elements elements_of(const Tensor& tensor) {
  Elements elements{tensor.dtype(), Ints(tensor.plain_sizes()), {}, {}};
  visit_dtype(tensor.dtype(), [&]<typename T>() { read_strided<T>(tensor, elements); });
  return elements;
}

Elements stored_elements(const Json& entry, const SafeTensors& tensors) {
  Tensor flat = tensors.at(entry.at("values").as_string());
  Elements elements{*dtype_from_name(entry.at("dtype").as_string()), {}, {}, {}};
  for (int64_t size : integers(entry.at("sizes"))) elements.sizes.push_back(size);
  Elements read = elements_of(flat);
  elements.integers = std::move(read.integers);
  if (!is_complex(elements.dtype)) {
    elements.numbers = std::move(read.numbers);
  } else {
    for (size_t i = 0; i + 1 < read.numbers.size(); i += 2)
      elements.numbers.emplace_back(read.numbers[i].re, read.numbers[i + 1].re);
  }
  return elements;
}

Tolerance tolerance_for(const Elements& stored, double noise) {
  Tolerance tolerance = tolerance_of(stored.dtype);
  if (noise == 0) return tolerance;
  size_t small = 0;
  double largest = 0;
  for (const Complex<double>& number : stored.numbers) {
    small += noise > kLargeNoise * magnitude(number);
    largest = std::max(largest, magnitude(number));
  }
  if (2 * small <= stored.numbers.size()) tolerance.absolute += 2 * noise;
  else if (largest > 0) tolerance.relative += std::min(2 * noise / largest, kLargeNoise);
  return tolerance;
}

bool same_element(const Elements& got, const Elements& stored, size_t i, Tolerance tolerance) {
  if (stored.is_exact()) return got.integers[i] == stored.integers[i];
  return same_number(got.numbers[i], stored.numbers[i], tolerance);
}

void Differences::compare_values(const std::string& what, const Elements& got, const Elements& stored,
                                 double noise, const Exact& exact) {
  if (got.dtype != stored.dtype || got.count() != stored.count()) {
    if (empty()) add(fmt::format("{}: {} values, expected {}", what, got.count(), stored.count()));
    return;
  }
  size_t wrong = 0, first = 0;
  const Tolerance tolerance = tolerance_for(stored, noise);
  std::optional<Elements> wide;
  bool has_asked = noise == 0 || !exact;
  for (size_t i = 0; i < stored.count(); ++i) {
    if (same_element(got, stored, i, tolerance)) continue;
    if (!std::exchange(has_asked, true)) wide = confirmed(exact(), stored, noise);
    if (wide && is_as_close(got, stored, *wide, i)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong)
    add(fmt::format("{}: {} of {} values differ, first at {}: got {}, expected {}{}", what, wrong,
                    stored.count(), place_of(first, IntSpan(stored.sizes)), got.text(first),
                    stored.text(first), noise > 0 ? fmt::format(" (noise {:.2g})", noise) : ""));
}

template <typename T>
bool Differences::expect(const std::string& what, const T& got, const T& stored) {
  if (got != stored) add(fmt::format("{}: got {}, expected {}", what, got, stored));
  return got == stored;
}

void Differences::compare_type_and_sizes(const std::string& what, const Tensor& got, const Json& entry) {
  expect(what + " dtype", std::string(dtype_name(got.dtype())), entry.at("dtype").as_string());
  expect(what + " sizes", got.plain_sizes().vec(), integers(entry.at("sizes")));
}

void Differences::compare_layout(const std::string& what, const Tensor& got, const Json& entry) {
  expect(what + " strides", got.plain_strides().vec(), integers(entry.at("strides")));
  expect(what + " offset", got.storage_offset().plain(), entry.at("offset").as_int());
  expect(what + " conj", got.is_conj(), entry.contains("conj"));
  expect(what + " neg", got.is_neg(), entry.contains("neg"));
}

void Differences::compare_plain(const std::string& what, const Value& got, const Json& entry) {
  Value stored = plain_value(entry);
  if (!same_plain(got, stored))
    add(fmt::format("{}: got {} ({}), expected {} ({})", what, got.to_string(), got.kind_name(),
                    stored.to_string(), stored.kind_name()));
}

}  // namespace weft::recorded
