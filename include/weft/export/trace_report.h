#pragma once

#include <string>
#include <vector>

#include "weft/capture/trace.h"
#include "weft/export/export_program.h"

namespace weft {

// The ways from a program to an exported one, and what may come of them.
enum class ExportType : uint8_t {
  kDirectExport,    // the program itself is exported
  kTraceAndExport,  // its trace is called by the export
  kSourceToSource,  // the graph of its trace is exported as it stands
};
enum class ExportOutcome : uint8_t { kSuccess, kFailedToExport, kFailedToRun, kAccuracyError };

// "DIRECT_EXPORT", "TRACE_AND_EXPORT", "SOURCE_TO_SOURCE"
std::string_view to_string(ExportType type);
// "SUCCESS", "FAILED_TO_EXPORT", "FAILED_TO_RUN", "ACCURACY_ERROR"
std::string_view to_string(ExportOutcome outcome);

// Whether what is traced today could be exported tomorrow.
struct TraceReport {
  struct Entry {
    std::string api;  // "trace"
    ExportType type;
    ExportOutcome outcome;
    std::string text;  // "succeeded", "accuracy error", or the words of the error
  };
  std::vector<Entry> entries;
  // A line each.
  std::string to_string() const;
};

// Whether an exported program and a trace gave the same: their leaves are of the same kind and layout,
// tensors of the same dtype and close, other values equal. Leaves that only one of them has do not count, and
// from the first one that has no elements to compare (an opaque layout, a fake tensor) nothing is compared.
bool trace_agrees_with_export(const Value& exported, const Value& traced);

namespace detail {
// Without `program` it was traced already.
TraceReport trace_report(const std::optional<ModuleToExport>& program, const ModuleToExport& trace,
                         const GraphModule& graph, const ValueList& inputs);

inline ModuleToExport traced_to_export(const TracedFunction& traced) {
  return {traced.graph_module(), make_closure(traced.function())};
}
}  // namespace detail

// Traces a function or module with these inputs, which stay as they are, and tries each way to export it:
// what is traced already is not exported directly. Errors are entries; only one of the trace itself is
// thrown.
//
//   std::cout << trace_report(net, {x}).to_string();
template <typename F>
TraceReport trace_report(const F& f, const ValueList& inputs) {
  if constexpr (std::is_same_v<F, TracedFunction>) {
    return detail::trace_report(std::nullopt, detail::traced_to_export(f), f.graph_module(), inputs);
  } else if constexpr (std::is_base_of_v<TracedModule, F>) {
    return detail::trace_report(std::nullopt, detail::module_to_export(f), f.forward_method().graph_module(),
                                inputs);
  } else if constexpr (std::is_base_of_v<nn::Module, F>) {
    const TracedModule traced = trace(f, Value::tuple(inputs));
    return detail::trace_report(detail::module_to_export(f), detail::module_to_export(traced),
                                traced.forward_method().graph_module(), inputs);
  } else {
    const TracedFunction traced = trace(f, Value::tuple(inputs));
    const nn::Module nothing;
    return detail::trace_report(detail::ModuleToExport{nothing, make_closure(as_value_function(f))},
                                detail::traced_to_export(traced), traced.graph_module(), inputs);
  }
}

}  // namespace weft
