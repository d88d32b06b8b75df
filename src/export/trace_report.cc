#include "weft/export/trace_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/core/pytree.h"
#include "weft/core/value_walk.h"
#include "weft/ops/close.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {

std::string_view to_string(ExportType type) {
  switch (type) {
    case ExportType::kDirectExport:
      return "DIRECT_EXPORT";
    case ExportType::kTraceAndExport:
      return "TRACE_AND_EXPORT";
    case ExportType::kSourceToSource:
      return "SOURCE_TO_SOURCE";
  }
  fail("ExportType: {} is none of its values", static_cast<int>(type));
}

std::string_view to_string(ExportOutcome outcome) {
  switch (outcome) {
    case ExportOutcome::kSuccess:
      return "SUCCESS";
    case ExportOutcome::kFailedToExport:
      return "FAILED_TO_EXPORT";
    case ExportOutcome::kFailedToRun:
      return "FAILED_TO_RUN";
    case ExportOutcome::kAccuracyError:
      return "ACCURACY_ERROR";
  }
  fail("ExportOutcome: {} is none of its values", static_cast<int>(outcome));
}

namespace {

std::string_view layout_of_leaf(const Value& leaf) {
  return leaf.is_tensor() ? layout_of(leaf.tensor_ref()) : "";
}

// What a leaf is: a number, a text, an ordinary tensor, a fake one, an extension of some type.
std::string kind_of(const Value& leaf) {
  if (!leaf.is_tensor()) return std::string(leaf.kind_name());
  if (is_fake(leaf.tensor_ref())) return "fake tensor";
  const Extension* extension = extension_of(leaf.tensor_ref());
  return extension ? extension->type_name() : "tensor";
}

}  // namespace

bool trace_agrees_with_export(const Value& exported, const Value& traced) {
  const ValueList a = tree_leaves(exported), b = tree_leaves(traced);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (layout_of_leaf(a[i]) != layout_of_leaf(b[i])) return false;
    if (a[i].is_tensor() && layout_of_leaf(a[i]) != "strided") return true;
    if (kind_of(a[i]) != kind_of(b[i])) return false;
    if (!a[i].is_tensor()) {
      if (a[i] != b[i]) return false;
      continue;
    }
    if (is_fake(a[i].tensor_ref())) return true;
    if (find_mismatch(a[i].tensor_ref(), b[i].tensor_ref(), {.rtol = 1e-5, .atol = 1e-8})) return false;
  }
  return true;
}

// --- the report ------------------------------------------------------------------------------------------

namespace {

ValueList copies_of(const ValueList& inputs) {
  return map_tensors(inputs, [](const Tensor& tensor) {
    return Value(tensor.detach().clone().set_requires_grad(tensor.requires_grad()));
  });
}

// Tries one way, on copies of the inputs.
TraceReport::Entry tried(ExportType type, const detail::ModuleToExport& program, const ValueList& inputs,
                         const Value& traced) {
  TraceReport::Entry entry{"trace", type, ExportOutcome::kSuccess, "succeeded"};
  auto fails = [&](ExportOutcome outcome, std::string text) {
    entry.outcome = outcome;
    entry.text = std::move(text);
    return entry;
  };
  std::optional<ExportedProgram> exported;
  try {
    exported = detail::export_program(program, copies_of(inputs), {});
  } catch (const std::exception& error) {
    return fails(ExportOutcome::kFailedToExport, error.what());
  }
  Value result;
  try {
    result = exported->module().call(copies_of(inputs));
  } catch (const std::exception& error) {
    return fails(ExportOutcome::kFailedToRun, error.what());
  }
  return trace_agrees_with_export(result, traced) ? entry
                                                  : fails(ExportOutcome::kAccuracyError, "accuracy error");
}

}  // namespace

TraceReport detail::trace_report(const std::optional<ModuleToExport>& program, const ModuleToExport& trace,
                                 const GraphModule& graph, const ValueList& inputs) {
  const Value traced = trace.forward->call(copies_of(inputs));
  TraceReport report;
  if (program) report.entries.push_back(tried(ExportType::kDirectExport, *program, inputs, traced));
  report.entries.push_back(tried(ExportType::kTraceAndExport, trace, inputs, traced));
  const ModuleToExport source{graph, make_closure(graph.function())};
  report.entries.push_back(tried(ExportType::kSourceToSource, source, inputs, traced));
  return report;
}

std::string TraceReport::to_string() const {
  std::string text;
  for (const Entry& entry : entries)
    text += fmt::format("{}: {}: {}: {}\n", entry.api, weft::to_string(entry.type),
                        weft::to_string(entry.outcome), entry.text);
  return text;
}

}  // namespace weft
