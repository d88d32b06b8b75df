#pragma once

#include <cstdint>
#include <string_view>

#include "weft/core/value.h"

namespace weft {

// The ways from a program to an exported one, and what may come of them.
enum class ExportType : uint8_t { kDirectExport, kTraceAndExport, kSourceToSource };
enum class ExportOutcome : uint8_t { kSuccess, kFailedToExport, kFailedToRun, kAccuracyError };

// "DIRECT_EXPORT", "TRACE_AND_EXPORT", "SOURCE_TO_SOURCE"
std::string_view to_string(ExportType type);
// "SUCCESS", "FAILED_TO_EXPORT", "FAILED_TO_RUN", "ACCURACY_ERROR"
std::string_view to_string(ExportOutcome outcome);

// Whether an exported program and a trace gave the same: their leaves are of the same kind and layout,
// tensors of the same dtype and close, other values equal. Leaves that only one of them has do not count, and
// from the first one that has no elements to compare (an opaque layout, a fake tensor) nothing is compared.
bool trace_agrees_with_export(const Value& exported, const Value& traced);

}  // namespace weft
