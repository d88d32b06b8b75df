#include "samples/runner.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <set>

#include "samples/compare.h"
#include "samples/finite_differences.h"
#include "samples/properties.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft::recorded {
namespace {

// Results as the format lists them: the elements of a tuple or list, or the one result.
std::vector<Value> results_of(const Value& result) {
  return result.is_sequence() ? result.elements() : std::vector<Value>{result};
}

double number_at(const Json* list, size_t i) {
  return list && list->at(i).is_number() ? list->at(i).as_double() : 0;
}

// One run of one sample.
class SampleRun {
 public:
  SampleRun(const Operator& op, const SampleFile& file, const Row& row)
      : op_(op), file_(file), row_(row), json_(*row.json) {}

  std::vector<std::string> run(bool with_vjp) {
    check_values();
    if (with_vjp && found_.empty()) check_gradients();
    return found_.take();
  }

 private:
  void check_values() {
    GradModeScope no_grad(false);
    arguments_ = make_arguments(op_, row_, file_.tensors());
    Value result = call(op_, arguments_.values);
    compare_structure(result);
    if (!found_.empty()) return;
    std::vector<Value> results = results_of(result);
    const Json* noise = json_.find("noise");
    for (size_t i = 0; i < results.size(); ++i)
      compare_result(fmt::format("out[{}]", i), std::to_string(i), results[i], json_.at("out").at(i),
                     number_at(noise, i));
    if (const Json* after = json_.find("after"))
      for (const auto& [name, entry] : after->as_object()) compare_written(name, entry);
    compare_unwritten();
    if (found_.empty()) check_decomposition(found_, row_, arguments_, tensors_among(results));
  }

  void compare_structure(const Value& result) {
    const Json* kind = json_.find("out_is");
    const char* wanted = !kind ? "one result" : kind->as_string() == "list" ? "a list" : "a tuple";
    const char* got = result.is_list() ? "a list" : result.is_tuple() ? "a tuple" : "one result";
    if (std::strcmp(wanted, got) != 0)
      return found_.add(fmt::format("out: got {}, expected {}", got, wanted));
    size_t count = results_of(result).size(), stored = json_.at("out").size();
    if (count != stored) found_.add(fmt::format("out: {} results, expected {}", count, stored));
  }

  void compare_result(const std::string& what, const std::string& name, const Value& got, const Json& entry,
                      double noise) {
    if (entry.is_array()) {
      if (!got.is_sequence() || got.elements().size() != entry.size())
        return found_.add(
            fmt::format("{}: got {}, expected a list of {}", what, got.kind_name(), entry.size()));
      for (size_t i = 0; i < entry.size(); ++i)
        compare_result(fmt::format("{}[{}]", what, i), name, got.elements()[i], entry.at(i), noise);
      return;
    }
    if (!entry.contains("values")) return found_.compare_plain(what, got, entry);
    if (!got.is_tensor())
      return found_.add(fmt::format("{}: got {}, expected a tensor", what, got.kind_name()));
    compare_tensor(what, name, got.tensor_ref(), entry, noise);
    compare_aliasing(what, got.tensor_ref(), entry);
  }

  void compare_tensor(const std::string& what, const std::string& name, const Tensor& got, const Json& entry,
                      double noise) {
    found_.compare_type_and_sizes(what, got, entry);
    found_.compare_layout(what, got, entry);
    if (entry.at("values").is_null() || !found_.empty()) return;
    Elements ours = elements_of(got), stored = stored_elements(entry, file_.tensors());
    switch (uniqueness_of(row_, name)) {
      case Uniqueness::kUnique:
        leave_out_nan_inputs(row_, false, arguments_, ours, stored);
        return found_.compare_values(what, ours, stored, noise, [&] { return exact_result(name); });
      case Uniqueness::kAmongEquals:
        return compare_choices(found_, what, name, row_, arguments_, ours, stored);
      case Uniqueness::kAnyOrder:
        return compare_in_any_order(found_, what, ours, stored, noise);
      case Uniqueness::kUpToPhase:  // the decomposition is checked as a whole
      case Uniqueness::kAnyValue:
        return;
    }
  }

  // The same in double precision; nothing where the call has no such form.
  std::optional<Elements> exact_result(const std::string& number) const {
    try {
      std::vector<Value> results = wide_results(op_, make_arguments(op_, row_, file_.tensors()));
      const auto i = static_cast<size_t>(std::atoi(number.c_str()));
      if (i < results.size() && results[i].is_tensor()) return elements_of(results[i].tensor_ref());
    } catch (const Error&) {
    }
    return std::nullopt;
  }
  std::optional<Elements> exact_gradient(const std::string& name) const {
    try {
      const Arguments arguments = make_arguments(op_, row_, file_.tensors());
      std::vector<Tensor> grads = wide_gradients(op_, arguments, indices_of_cotangents());
      size_t at = 0;
      for (const auto& [own, tensor] : arguments.tensors) {
        if (!is_differentiable(tensor.dtype())) continue;
        if (own == name && at < grads.size() && grads[at].defined()) return elements_of(grads[at]);
        ++at;
      }
    } catch (const Error&) {
    }
    return std::nullopt;
  }

  void compare_aliasing(const std::string& what, const Tensor& got, const Json& entry) {
    if (const Json* alias = entry.find("alias_of")) {
      const Tensor* owner = arguments_.find(alias->as_string());
      if (!owner) return found_.add(fmt::format("{}: there is no argument {}", what, alias->as_string()));
      if (got.storage() != owner->storage())
        return found_.add(fmt::format("{}: does not share the memory of {}", what, alias->as_string()));
      if (entry.contains("same_object") && !got.is_same(*owner))
        found_.add(fmt::format("{}: is not {} itself", what, alias->as_string()));
      return;
    }
    if (got.storage()->bytes() == 0) return;  // no memory to share: nothing is recorded
    for (const auto& [name, tensor] : arguments_.tensors)
      if (got.storage() == tensor.storage())
        return found_.add(fmt::format("{}: shares the memory of {}, expected fresh memory", what, name));
  }

  void compare_written(const std::string& name, const Json& entry) {
    const Tensor* tensor = arguments_.find(name);
    if (!tensor) return found_.add(fmt::format("after: there is no argument {}", name));
    compare_tensor("after " + name, name, *tensor, entry, 0);
  }

  // An argument that the schema does not mark as written stays as it was.
  void compare_unwritten() {
    std::set<const Storage*> written;
    const Json* after = json_.find("after");
    for (const auto& [name, tensor] : arguments_.tensors)
      if ((after && after->contains(name)) || is_mutated_silently(name))
        written.insert(tensor.storage().get());
    Arguments before = make_arguments(op_, row_, file_.tensors());
    for (size_t i = 0; i < before.tensors.size(); ++i) {
      const auto& [name, tensor] = arguments_.tensors[i];
      const Tensor& original = before.tensors[i].second;
      if (written.contains(tensor.storage().get())) continue;
      size_t bytes = original.storage()->bytes();
      bool same =
          tensor.storage()->bytes() == bytes && tensor.plain_sizes().vec() == original.plain_sizes().vec() &&
          tensor.plain_strides().vec() == original.plain_strides().vec() &&
          (bytes == 0 || std::memcmp(tensor.storage()->data(), original.storage()->data(), bytes) == 0);
      if (!same) found_.add(fmt::format("argument {} was changed", name));
    }
  }

  // Batch normalisation updates its running statistics, and its schemas do not say so.
  static bool is_mutated_silently(const std::string& name) {
    return name == "running_mean" || name == "running_var";
  }

  static std::vector<Tensor> tensors_among(const std::vector<Value>& values) {
    std::vector<Tensor> tensors;
    for (const Value& value : values)
      if (value.is_tensor()) tensors.push_back(value.tensor_ref());
    return tensors;
  }

  void check_gradients() {
    if (json_.contains("vjp_error")) return check_missing_gradient();
    const Json* stored = json_.find("vjp");
    if (!stored) return;
    arguments_ = make_arguments(op_, row_, file_.tensors());
    std::vector<Tensor> grads = gradients();
    if (!found_.empty()) return;
    size_t at = 0;
    for (const auto& [name, tensor] : arguments_.tensors) {
      if (!is_differentiable(tensor.dtype())) continue;
      const Json* entry = stored->find(name);
      if (!entry) found_.add(fmt::format("vjp {}: nothing is stored", name));
      else compare_gradient(name, grads[at], *entry);
      ++at;
    }
  }

  // PyTorch refuses to differentiate here. weft refuses too, or has gradients that finite differences
  // confirm.
  void check_missing_gradient() {
    arguments_ = make_arguments(op_, row_, file_.tensors());
    try {
      gradients();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      return;
    }
    found_ = {};
    if (op_.has(Traits::kRandom)) return;  // the numbers do not follow from the arguments
    arguments_ = make_arguments(op_, row_, file_.tensors());
    if (auto mismatch = finite_difference_mismatch(op_, arguments_, indices_of_cotangents()))
      found_.add(fmt::format("vjp: {}; PyTorch says: {}", *mismatch, json_.at("vjp_error").as_string()));
  }

  // For every float or complex tensor argument, in order.
  std::vector<Tensor> gradients() {
    std::vector<Tensor> leaves, outputs, cotangents;
    for (const auto& [name, tensor] : arguments_.tensors)
      if (is_differentiable(tensor.dtype())) leaves.push_back(tensor.set_requires_grad());
    std::vector<Value> results = results_of(call(op_, arguments_.values));
    for (size_t i : indices_of_cotangents()) {
      if (i >= results.size() || !results[i].is_tensor() || !results[i].tensor_ref().requires_grad()) {
        found_.add(fmt::format("vjp: out[{}] carries no gradient", i));
        return {};
      }
      outputs.push_back(results[i].tensor_ref());
      cotangents.push_back(cotangent_for(results[i].tensor_ref()));
    }
    return autograd::grad(outputs, leaves, cotangents, {.allow_unused = true});
  }

  std::vector<size_t> indices_of_cotangents() const {
    const Json* of = json_.find("vjp_of");
    if (!of) return {0};
    std::vector<size_t> indices;
    for (const Json& index : of->as_array()) indices.push_back(static_cast<size_t>(index.as_int()));
    return indices;
  }

  void compare_gradient(const std::string& name, const Tensor& got, const Json& entry) {
    std::string what = "vjp " + name;
    if (entry.is_null()) {
      if (got.defined()) found_.add(what + ": got a gradient, expected none");
      return;
    }
    if (!got.defined()) return found_.add(what + ": got none, expected a gradient");
    found_.compare_type_and_sizes(what, got, entry);
    if (!found_.empty()) return;
    const Json* noises = json_.find("vjp_noise");
    const Json* noise = noises ? noises->find(name) : nullptr;
    double distance = noise ? noise->as_double() : 0;
    Elements ours = elements_of(got), stored = stored_elements(entry, file_.tensors());
    switch (gradient_uniqueness_of(row_, name)) {
      case Uniqueness::kUnique:
        leave_out_nan_inputs(row_, true, arguments_, ours, stored);
        return found_.compare_values(what, ours, stored, distance, [&] { return exact_gradient(name); });
      case Uniqueness::kAmongEquals:
        return compare_lane_sums(found_, what, row_, ours, stored, distance);
      case Uniqueness::kAnyOrder:
      case Uniqueness::kUpToPhase:
      case Uniqueness::kAnyValue:
        return;
    }
  }

  const Operator& op_;
  const SampleFile& file_;
  const Row& row_;
  const Json& json_;
  Arguments arguments_;
  Differences found_;
};

RowResult failed(std::string difference) {
  return {.outcome = Outcome::kFailed, .differences = {std::move(difference)}};
}

RowResult run_sample(const Operator& op, const SampleFile& file, const Row& row, const RunOptions& options) {
  RowResult result;
  try {
    result.differences = SampleRun(op, file, row).run(options.vjp);
  } catch (const Error& error) {
    result.differences.push_back(fmt::format(
        "{}: {}", error.kind() == ErrorKind::kInternal ? "internal error" : "error", error.what()));
  } catch (const std::exception& error) {
    result.differences.push_back(fmt::format("{}: {}", typeid(error).name(), error.what()));
  }
  if (!result.differences.empty()) result.outcome = Outcome::kFailed;
  return result;
}

// A bad call must fail with an error that is the caller's, not ours.
RowResult run_bad_call(const Operator& op, const SampleFile& file, const Row& row) {
  GradModeScope no_grad(false);
  RowResult result;
  std::optional<Arguments> arguments;
  try {
    arguments = make_arguments(op, row, file.tensors());
  } catch (const std::exception& error) {
    return failed(fmt::format("the arguments cannot be made: {}", error.what()));
  }
  try {
    call(op, arguments->values);
  } catch (const Error& error) {
    if (std::optional<std::string> wrong = wrong_kind(error)) return failed(*wrong);
    result.message = error.message();
    return result;
  } catch (const std::exception& error) {
    return failed(fmt::format("{}: {}", typeid(error).name(), error.what()));
  }
  return failed(fmt::format("no error, expected: {}", row.json->at("message").as_string()));
}

}  // namespace

std::optional<std::string> wrong_kind(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kUser:
      return std::nullopt;
    case ErrorKind::kUnsupported:
      return fmt::format("unsupported, expected a mistake of the caller: {}", error.what());
    case ErrorKind::kInternal:
      return fmt::format("internal error: {}", error.what());
  }
  return std::nullopt;
}

RowResult run_row(const SampleFile& file, const Row& row, const RunOptions& options) {
  if (row.overload.empty())
    return {.outcome = Outcome::kSkipped, .reason = "refused before any operator ran"};
  if (has_unsupported_type(row))
    return {.outcome = Outcome::kSkipped, .reason = "uint16, uint32 and uint64 are left out"};
  const Operator* op = find_operator(row.overload);
  if (!op) return {.outcome = Outcome::kSkipped, .reason = "not defined", .is_missing = true};
  return row.is_error ? run_bad_call(*op, file, row) : run_sample(*op, file, row, options);
}

std::map<std::string, OverloadResult> run_file(const SampleFile& file,
                                               const std::function<bool(const std::string& overload)>& wanted,
                                               const RunOptions& options, const Watch& watch) {
  std::map<std::string, OverloadResult> results;
  for (const Row& row : file.rows()) {
    if (wanted && !wanted(row.overload)) continue;
    if (watch.before) watch.before(row);
    RowResult one = run_row(file, row, options);
    if (watch.after) watch.after(row, one);
    OverloadResult& all = results[row.overload];
    (one.outcome == Outcome::kPassed   ? all.passed
     : one.outcome == Outcome::kFailed ? all.failed
                                       : all.skipped)++;
    all.is_missing |= one.is_missing;
    if (one.outcome == Outcome::kSkipped) ++all.reasons[one.reason];
    for (const std::string& difference : one.differences)
      all.differences.push_back(fmt::format("{}: {}", row.id, difference));
  }
  return results;
}

}  // namespace weft::recorded
