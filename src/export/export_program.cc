#include "weft/export/export_program.h"

#include "export/capture_program.h"
#include "export/flat_names.h"
#include "export/retrace.h"

namespace weft {
namespace {

constinit thread_local const ExportConfig* current_config = nullptr;

}  // namespace

const ExportConfig& ExportConfig::current() noexcept {
  static const ExportConfig usual;
  return current_config ? *current_config : usual;
}

ExportConfigScope::ExportConfigScope(ExportConfig config) : config_(config), outer_(current_config) {
  current_config = &config_;
}
ExportConfigScope::~ExportConfigScope() { current_config = outer_; }

ExportedProgram detail::export_for_training(const ModuleToExport& module, const ValueList& args,
                                            const ExportOptions& options) {
  const ExportConfig config = options.config.value_or(ExportConfig::current());
  return capture_program(module, args, options, config);
}

ExportedProgram detail::export_program(const ModuleToExport& module, const ValueList& args,
                                       const ExportOptions& options) {
  const ExportConfig config = options.config.value_or(ExportConfig::current());
  // Assertions go into the graph that stays.
  ExportConfig of_capture = config;
  of_capture.do_not_emit_runtime_asserts = true;
  return retraced(capture_program(module, args, options, of_capture),
                  {.pre_dispatch = true, .emit_runtime_asserts = !config.do_not_emit_runtime_asserts});
}

GraphModule detail::export_flat_module(const ModuleToExport& module, const ValueList& args,
                                       const ExportOptions& options) {
  return with_flat_names(export_for_training(module, args, options)).module();
}

}  // namespace weft
