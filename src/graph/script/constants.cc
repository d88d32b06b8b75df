// Constants as TorchScript writes them. Small tensors are laid out as ATen's C++ printer does, on one line.
#include "graph/script/constants.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// With all the digits that tell a double from its neighbours, and a point where it would look like an
// integer.
std::string float_text(double number) {
  if (std::isfinite(number) && std::abs(number) < 1e10 && std::trunc(number) == number)
    return fmt::format("{:.0f}.", number);
  if (std::isnan(number)) return "nan";
  return fmt::format("{:.17g}", number);
}

std::string complex_text(Complex<double> number) {
  const char* sign = number.im >= 0 || std::isnan(number.im) ? "+" : "";
  return fmt::format("{}{}{}j", float_text(number.re), sign, float_text(number.im));
}

// --- tensors ---------------------------------------------------------------------------------------------

constexpr int64_t kMostElements = 10, kLineWidth = 80;

// The layout of numbers that stand together: each is divided by `scale` and takes `width` columns.
struct NumberFormat {
  enum class Style : uint8_t { kPlain, kFixed, kScientific };
  double scale = 1;
  int width = 0;
  Style style = Style::kPlain;

  std::string operator()(double number) const {
    number /= scale;
    if (std::isnan(number)) return fmt::format("{:>{}}", "nan", width);
    switch (style) {
      case Style::kPlain:
        return fmt::format("{:>{}.6g}", number, width);
      case Style::kFixed:
        return fmt::format("{:>{}.4f}", number, width);
      case Style::kScientific:
        return fmt::format("{:>{}.4e}", number, width);
    }
    return "";
  }
};

// The number of digits before the point; 1 for zero.
double digits_before_point(double magnitude) {
  return magnitude == 0 ? 1 : std::floor(std::log10(magnitude)) + 1;
}

NumberFormat format_for(std::span<const double> numbers) {
  using Style = NumberFormat::Style;
  bool all_whole = true, any_finite = false;
  double least = 1, most = 1;
  for (double number : numbers) {
    if (!std::isfinite(number)) continue;
    all_whole &= number == std::ceil(number);
    double magnitude = std::abs(number);
    least = any_finite ? std::min(least, magnitude) : magnitude;
    most = any_finite ? std::max(most, magnitude) : magnitude;
    any_finite = true;
  }
  double low = any_finite ? digits_before_point(least) : 1, high = any_finite ? digits_before_point(most) : 1;
  if (all_whole) {
    if (high > 9) return {1, 11, Style::kScientific};
    return {1, static_cast<int>(high) + 1, Style::kPlain};
  }
  if (high - low > 4) return {1, std::abs(high) > 99 || std::abs(low) > 99 ? 12 : 11, Style::kScientific};
  if (high > 5 || high < 0) return {std::pow(10, high - 1), 7, Style::kFixed};
  return {1, high == 0 ? 7 : static_cast<int>(high) + 6, Style::kFixed};
}

std::string scale_line(const NumberFormat& format) {
  return format.scale == 1 ? "" : fmt::format("{:.15g} *\n", format.scale);
}

std::string matrix_text(std::span<const double> numbers, int64_t rows, int64_t columns, int indent) {
  NumberFormat format = format_for(numbers);
  const std::string margin(static_cast<size_t>(indent), ' ');
  const int64_t columns_a_line = (kLineWidth - indent) / (format.width + 1);
  std::string text = margin;
  for (int64_t first = 0; first < columns; first += columns_a_line) {
    const int64_t end = std::min(first + columns_a_line, columns);
    if (columns_a_line < columns)
      text += fmt::format("{}Columns {} to {}{}", first ? "\n" : "", first + 1, end, margin);
    if (format.scale != 1) text += scale_line(format) + margin;
    for (int64_t row = 0; row < rows; ++row) {
      if (row) text += margin + (format.scale == 1 ? "" : " ");
      for (int64_t column = first; column < end; ++column)
        text +=
            format(numbers[static_cast<size_t>(row * columns + column)]) + (column + 1 < end ? " " : "\n");
    }
  }
  return text;
}

// A matrix for each combination of the leading indices, under a title like "(1,2,.,.) =".
std::string stack_text(std::span<const double> numbers, IntSpan sizes) {
  const size_t leading = sizes.size() - 2;
  const int64_t rows = sizes[leading], columns = sizes[leading + 1];
  const auto each = static_cast<size_t>(rows * columns);
  std::string text;
  std::vector<int64_t> index(leading, 0);
  for (size_t at = 0; at < numbers.size(); at += each) {
    text += at ? "\n(" : "(";
    for (int64_t i : index) text += std::to_string(i + 1) + ",";
    text += ".,.) =\n" + matrix_text(numbers.subspan(at, each), rows, columns, 1);
    for (size_t d = leading; d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
  return text;
}

std::string elements_text(std::span<const double> numbers, IntSpan sizes) {
  if (numbers.empty()) return "";
  if (sizes.size() > 2) return stack_text(numbers, sizes);
  if (sizes.size() == 2) return matrix_text(numbers, sizes[0], sizes[1], 0);
  NumberFormat format = format_for(numbers);
  std::string text = scale_line(format);
  for (double number : numbers) text += format(number) + "\n";
  return text;
}

std::string one_element(const Value& number) {
  if (number.kind() == Value::Kind::kComplex)
    return fmt::format("{{({:g},{:g})}}", number.to_complex().re, number.to_complex().im);
  if (number.is_double()) return fmt::format("{{{:g}}}", number.to_double());
  return fmt::format("{{{}}}", number.to_int());
}

bool has_data(const Tensor& tensor) {
  return !tensor.is_symbolic() && !tensor.impl()->box && tensor.storage() && tensor.storage()->has_memory();
}

std::string tensor_text(const Tensor& tensor) {
  if (!has_data(tensor)) return "<Tensor>";
  MaskScope below(0);  // reading a constant is no part of any capture
  const int64_t count = tensor.plain_numel();
  if (count > kMostElements) return "<Tensor>";
  if (count == 1) return one_element(tensor.item());
  Tensor real = tensor.is_complex() ? weft::real(tensor) : tensor;
  Tensor doubles = real.to(kCpu, kFloat64).contiguous();
  std::string sizes;
  for (int64_t size : tensor.plain_sizes()) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  std::string device = tensor.device().is_cpu() ? "CPU" : tensor.device().to_string();
  std::string type = ScriptType{.dtype = tensor.dtype()}.to_string();
  std::string text =
      elements_text({doubles.data<double>(), static_cast<size_t>(count)}, tensor.plain_sizes()) +
      fmt::format("[ {}{}Type{{{}}} ]", device, type.substr(0, type.find('(')), sizes);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// --- all kinds -------------------------------------------------------------------------------------------

// What graphs and code write alike.
std::string leaf_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kDouble:
      return float_text(value.to_double());
    case Value::Kind::kComplex:
      return complex_text(value.to_complex());
    case Value::Kind::kString:
      return quoted_text(value.to_string_view());
    case Value::Kind::kDType:
      return std::to_string(scalar_type_number(value.to_dtype()));
    case Value::Kind::kLayout:
      return std::to_string(static_cast<int>(value.to_layout()));
    case Value::Kind::kMemoryFormat:
      return std::to_string(static_cast<int>(value.to_memory_format()));
    case Value::Kind::kGenerator:
      return fmt::format("torch.Generator(device=\"cpu\", seed={})", value.to_generator().seed());
    default:
      return value.to_string();
  }
}

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    static constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v\\'\"", kLetters = "abfnrtv\\'\"";
    if (size_t at = kEscaped.find(c); at != std::string_view::npos) (result += '\\') += kLetters[at];
    else if (c >= ' ' && c <= '~') result += c;
    else result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return result + "\"";
}

std::string constant_text(const Value& value, const ScriptType& type) {
  if (value.is_tensor()) return tensor_text(value.tensor_ref());
  if (type.is(ScriptType::Kind::kTensor)) return one_element(value);
  if (value.is_bool()) return value.to_bool() ? "1" : "0";
  if (value.kind() == Value::Kind::kDevice) return quoted_text(value.to_device().to_string());
  return constant_code(value, type);
}

std::string constant_code(const Value& value, const ScriptType& type) {
  invariant(!value.is_tensor() && !type.is(ScriptType::Kind::kTensor), "the constant {} has no code",
            value.to_string());
  if (value.kind() == Value::Kind::kDevice)
    return "torch.device(" + quoted_text(value.to_device().to_string()) + ")";
  if (!value.is_sequence()) return leaf_text(value);
  if (value.elements().empty()) return fmt::format("annotate({}, [])", type.annotation());
  std::string text;
  for (const Value& element : value.elements()) text += (text.empty() ? "" : ", ") + leaf_text(element);
  return "[" + text + "]";
}

std::string scalars_text(const ValueList& scalars) {
  std::string text;
  for (const Value& value : scalars)
    text += (text.empty() ? "" : ", ") +
            (value.is_string() ? std::string(value.to_string_view()) : value.to_string());
  return text;
}

int64_t scalar_type_number(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 0;
    case DType::kInt8:
      return 1;
    case DType::kInt16:
      return 2;
    case DType::kInt32:
      return 3;
    case DType::kInt64:
      return 4;
    case DType::kFloat16:
      return 5;
    case DType::kFloat32:
      return 6;
    case DType::kFloat64:
      return 7;
    case DType::kComplex64:
      return 9;
    case DType::kComplex128:
      return 10;
    case DType::kBool:
      return 11;
    case DType::kBFloat16:
      return 15;
  }
  return -1;
}

}  // namespace weft
