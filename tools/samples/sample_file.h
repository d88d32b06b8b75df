#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "weft/dispatch/operator.h"
#include "weft/io/safetensors.h"

// Recorded calls of operators, <family>.json beside <family>.safetensors: what was called with what, and what
// PyTorch answered. tests/data/samples/README.md describes the format.

namespace weft::recorded {

// One recorded call: a sample with its results, or a call that fails.
struct Row {
  const Json* json;
  std::string id;
  std::string overload;  // empty when the call was refused before any operator ran
  bool is_error;
};

class SampleFile {
 public:
  // A FormatError that names the file if it is no sample file.
  static SampleFile load(const std::filesystem::path& json);
  SampleFile(SampleFile&&) = default;

  const std::string& family() const { return family_; }
  const std::vector<Row>& rows() const { return rows_; }
  const SafeTensors& tensors() const { return tensors_; }

 private:
  SampleFile() = default;

  std::string family_;
  std::vector<Row> rows_;
  std::unique_ptr<const Json> json_;  // the rows point into it
  SafeTensors tensors_;
};

// The sample files of a folder in alphabetical order; a path that is a .json file stands for itself.
std::vector<std::filesystem::path> sample_files(const std::filesystem::path& place);

// The arguments of one recorded call, made anew.
struct Arguments {
  std::vector<Value> values;  // in schema order
  // Every tensor that was given as one, by name: "self", "tensors[1]".
  std::vector<std::pair<std::string, Tensor>> tensors;

  const Tensor* find(std::string_view name) const;
};
Arguments make_arguments(const Operator& op, const Row& row, const SafeTensors& tensors);

// Whether an argument or a result is of a type that weft leaves out on purpose (uint16, uint32, uint64).
bool has_unsupported_type(const Row& row);

// A number, string, dtype, ... as the format writes it; None for null.
Value plain_value(const Json& json);

}  // namespace weft::recorded
