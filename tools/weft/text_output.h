#pragma once

#include <string>

#include "base/json.h"
#include "weft/core/tensor.h"

namespace weft::cli {

// "0: f32[2, 3] 0.5 1.25 -3 ..."
std::string summary(const std::string& key, const Tensor& tensor);
Json summary_json(const std::string& key, const Tensor& tensor);

// A UsageError for an engine that this build does not have.
void require_engine(const std::string& engine);

// Writes a text where a command's -o says: a file, or standard output.
void write_text(const std::string& text, const std::string& path);

// "1.2 s", "3.4 ms", "120 us"
std::string duration_text(double seconds);

// A line on a terminal that tells how far something is; nothing elsewhere.
class Progress {
 public:
  Progress(std::string what, double total);
  ~Progress();
  // `note` stands behind the bar.
  void show(double done, const std::string& note);

 private:
  std::string what_;
  double total_, began_;
  double shown_ = -1;
  bool is_terminal_;
};

// Seconds from some point on.
double now();

}  // namespace weft::cli
