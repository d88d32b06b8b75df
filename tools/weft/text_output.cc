#include "text_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "commands.h"
#include "weft/core/value.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

constexpr int64_t kFirst = 8;

// The first elements, row by row.
ValueList first_values(const Tensor& tensor) {
  ValueList values;
  if (tensor.plain_numel() == 0) return values;
  const Tensor flat = tensor.detach().resolve_conj().resolve_neg().reshape({-1});
  for (int64_t i = 0; i < std::min(kFirst, flat.plain_numel()); ++i)
    values.push_back(flat.select(0, i).item());
  return values;
}

std::string number_text(const Value& value) {
  return value.kind() == Value::Kind::kDouble ? fmt::format("{:.6g}", value.to_double()) : value.to_string();
}

}  // namespace

std::string summary(const std::string& key, const Tensor& tensor) {
  std::string text = fmt::format("{}: {}", key, describe(tensor).str());
  for (const Value& value : first_values(tensor)) text += " " + number_text(value);
  return tensor.plain_numel() > kFirst ? text + " ..." : text;
}

Json summary_json(const std::string& key, const Tensor& tensor) {
  Json::Array sizes, values;
  for (int64_t size : tensor.plain_sizes()) sizes.emplace_back(size);
  for (const Value& value : first_values(tensor)) {
    // JSON has no infinities, no NaN and no complex numbers.
    const bool is_finite = value.kind() == Value::Kind::kDouble && std::isfinite(value.to_double());
    if (is_finite) values.emplace_back(value.to_double());
    else if (value.kind() == Value::Kind::kInt) values.emplace_back(value.to_int());
    else if (value.kind() == Value::Kind::kBool) values.emplace_back(value.to_bool());
    else values.emplace_back(value.to_string());
  }
  return Json::Object{{"key", key},
                      {"dtype", dtype_name(tensor.dtype())},
                      {"sizes", std::move(sizes)},
                      {"first", std::move(values)}};
}

void require_engine(const std::string& engine) {
  if (engine == "compiled")
    throw UsageError("this build of weft has no compiler yet: --engine eager runs the graph node by node");
  if (engine != "eager") throw UsageError(fmt::format("there is no engine '{}'; there is eager", engine));
}

void write_text(const std::string& text, const std::string& path) {
  if (path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.ends_with('\n')) std::fputc('\n', stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UsageError(fmt::format("'{}' cannot be written", path));
}

std::string duration_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::string what, double total)
    : what_(std::move(what)), total_(total), began_(now()), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_terminal_ && shown_ >= 0) fmt::print(stderr, "\r\033[K");
}

void Progress::show(double done, const std::string& note) {
  const double at = now();
  if (!is_terminal_ || (at - shown_ < 0.1 && done < total_)) return;
  shown_ = at;
  constexpr int kWidth = 30;
  const double share = total_ > 0 ? std::min(done / total_, 1.0) : 1;
  const auto filled = static_cast<size_t>(share * kWidth);
  const double spent = at - began_, left = share > 0 ? spent / share - spent : 0;
  fmt::print(stderr, "\r\033[K{} [{}{}] {:3.0f} % {} {} left", what_, std::string(filled, '#'),
             std::string(kWidth - filled, '.'), share * 100, note, duration_text(left));
  std::fflush(stderr);
}

}  // namespace weft::cli
