#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/zip.h"
#include "weft/io/pt2.h"
#include "weft/io/safetensors.h"

// A case of the reference corpus: a program that PyTorch exported, in two dialects, and what PyTorch computes
// from it. scripts/pack_compat.py makes the files.

namespace weft::compat {

struct Tolerance {
  double rtol = 0, atol = 0;
};

class Case {
 public:
  Case(const std::string& folder, const std::string& name);

  const Json& notes() const { return notes_; }
  // The archive as it was; `dialect` is "pt2" or "core".
  std::string archive(const std::string& dialect) const;
  // Null if the case has no such tensors: "inputs", "outputs-2", "after", ...
  const SafeTensors* tensors(const std::string& name) const;
  Tolerance tolerance() const;
  bool is_random() const { return notes_.contains("random"); }

  // The leaves of (args, kwargs), with tensors in their strides; `suffix` is "" or "-2".
  ValueList inputs(const std::string& suffix) const;
  // The same with tensors of the shapes and values that must be refused.
  ValueList violating_inputs() const;
  // The leaves of the output: tensors by key, constants as they are.
  ValueList outputs(const std::string& suffix) const;

 private:
  zip::Archive zip_;
  Json notes_;
  std::map<std::string, SafeTensors> tensors_;
};

// The names of all cases, in order.
std::vector<std::string> case_names(const std::string& folder);

// Where two tensors differ, or nothing.
std::string difference(const Tensor& expected, const Tensor& got, const Tolerance& tolerance);
// By the rule for gradients: `largest` is the largest of all in the case.
std::string gradient_difference(const Tensor& expected, const Tensor& got, double largest);
double largest_magnitude(const Tensor& tensor);

// Whether two conditions are the same, up to the order of their sides and parentheses.
bool same_relation(std::string a, std::string b);

}  // namespace weft::compat
