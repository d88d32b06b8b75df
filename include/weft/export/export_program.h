#pragma once

#include "weft/capture/make_graph.h"
#include "weft/export/dynamic_shapes.h"
#include "weft/export/errors.h"
#include "weft/export/exported_program.h"

namespace weft {

// What an export does about unusual programs; by default what is safe.
struct ExportConfig {
  // Conditions on sizes that no declaration can say, as `n * m == 12`, become assertions of the program,
  // instead of an error that asks for numbers in the place of dimensions.
  bool allow_complex_guards_as_runtime_asserts = false;
  // The same as far as it keeps sizes from being fixed.
  bool disable_forced_specializations = false;
  // Leaves out assertions of what only a run can tell.
  bool do_not_emit_runtime_asserts = false;
  // Whether recurrent layers may be exported.
  bool allow_rnn = true;

  // Of this thread.
  static const ExportConfig& current() noexcept;
};

// While it lives, exports of this thread use this configuration, unless they are given another.
class ExportConfigScope {
 public:
  explicit ExportConfigScope(ExportConfig config);
  ~ExportConfigScope();
  ExportConfigScope(const ExportConfigScope&) = delete;

 private:
  ExportConfig config_;
  const ExportConfig* outer_;
};

struct ExportOptions {
  // Arguments by name.
  Kwargs kwargs = {};
  // Sizes are those of the examples, but for those that are declared here.
  DynamicShapes dynamic_shapes = {};
  std::optional<ExportConfig> config = std::nullopt;
};

namespace detail {
// A module as exports take it.
struct ModuleToExport {
  const nn::Module& module;
  Ref<Callable> forward;
};
ExportedProgram export_program(const ModuleToExport& module, const ValueList& args,
                               const ExportOptions& options);
ExportedProgram export_for_training(const ModuleToExport& module, const ValueList& args,
                                    const ExportOptions& options);
GraphModule export_flat_module(const ModuleToExport& module, const ValueList& args, const ExportOptions& options);

template <typename M>
ModuleToExport module_to_export(const M& module) {
  nn::note_class(*module.state(), typeid(M));
  Ref<Callable> forward = nn::detail::erased_call(module);
  require(static_cast<bool>(forward), "export: the forward of {} takes or gives types that no Value holds",
          module.state()->class_name);
  return {module, std::move(forward)};
}
}  // namespace detail

// The module's call with arguments like these as one program. Its graph is functional: nothing in it writes,
// and what the program changes of buffers and arguments are outputs; composite operators that neither write
// nor alias stay whole. forward runs exactly once, on tensors without data; module and arguments stay as they
// are.
//
//   auto batch = Dim("batch", {.min = 2, .max = 4096});
//   ExportedProgram program = export_program(net, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
//   save_pt2(program, "net.pt2");   // torch.export.load reads it
//
// Conditions on sizes that contradict a declaration are a ConstraintViolationError, which says what to
// declare instead.
template <typename M>
ExportedProgram export_program(const M& module, const ValueList& args, const ExportOptions& options = {}) {
  return detail::export_program(detail::module_to_export(module), args, options);
}

// The same as the program was written: operators that write and composites stay, so that it can be trained
// like the module itself. It is what PyTorch's torch.export.export gives.
template <typename M>
ExportedProgram export_for_training(const M& module, const ValueList& args,
                                    const ExportOptions& options = {}) {
  return detail::export_for_training(detail::module_to_export(module), args, options);
}

// The same as one module without children: its parameters, buffers and constants have names without dots,
// "layer1_conv_weight".
template <typename M>
GraphModule export_flat_module(const M& module, const ValueList& args, const ExportOptions& options = {}) {
  return detail::export_flat_module(detail::module_to_export(module), args, options);
}

// The same as a module to call and to train, with the parameters and buffers of the one that it was made of.
template <typename M>
GraphModule capture_pre_autograd_graph(const M& module, const ValueList& args,
                                       const ExportOptions& options = {}) {
  return export_for_training(module, args, options).module();
}

}  // namespace weft
