#pragma once

// For authors of operators, passes, extensions and back ends: what weft/weft.h has, and all that it is made
// of.
#include "weft/weft.h"

// values: what operators and graphs pass around
#include "weft/core/argument_names.h"
#include "weft/core/callable.h"
#include "weft/core/future.h"
#include "weft/core/option_types.h"
#include "weft/core/pytree.h"
#include "weft/core/scalar.h"
#include "weft/core/spans.h"
#include "weft/core/struct.h"
#include "weft/core/typed_value.h"
#include "weft/core/value.h"
#include "weft/core/value_walk.h"

// operators of your own, and what is known of the others
#include "weft/autograd/gradcheck.h"
#include "weft/dispatch/boxing.h"
#include "weft/dispatch/op_def.h"
#include "weft/dispatch/operator.h"
#include "weft/dispatch/schema.h"
#include "weft/func/out_dtype.h"
#include "weft/ops/define.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/overloads.h"

// watching calls: modes, recorders, layers, tensors of your own, tensors without data
#include "weft/autograd/anomaly.h"
#include "weft/autograd/data.h"
#include "weft/autograd/grad_node.h"
#include "weft/core/printable_box.h"
#include "weft/core/tensor_impl.h"
#include "weft/core/untracked_box.h"
#include "weft/core/view_step.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/mode.h"
#include "weft/dispatch/module_stack.h"
#include "weft/dispatch/origin.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/functionalize.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"
#include "weft/ops/fake_converter.h"
#include "weft/ops/nested.h"
#include "weft/ops/sparse.h"

// sizes as expressions
#include "weft/sym/expr.h"
#include "weft/sym/shape_env.h"
#include "weft/sym/source.h"
#include "weft/sym/sym_int.h"
#include "weft/sym/text.h"
#include "weft/sym/value_range.h"

// modules from the inside
#include "weft/nn/activations.h"
#include "weft/nn/deep_copy.h"
#include "weft/nn/module.h"
#include "weft/nn/module_text.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/spatial.h"
#include "weft/nn/update_rules.h"

// models that come with weft, each by its own header
#include "weft/models/bert.h"
#include "weft/models/gpt2.h"
#include "weft/models/resnet.h"

// graphs: reading, changing, running and writing them
#include "weft/graph/annotation.h"
#include "weft/graph/compare.h"
#include "weft/graph/graph.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/interpreter.h"
#include "weft/graph/manipulation.h"
#include "weft/graph/missing_operators.h"
#include "weft/graph/node.h"
#include "weft/graph/parse.h"
#include "weft/graph/pattern.h"
#include "weft/graph/picture.h"
#include "weft/graph/script_view.h"
#include "weft/graph/text.h"
#include "weft/io/compile_cache_folder.h"
#include "weft/io/folder.h"
#include "weft/io/graph_file.h"
#include "weft/io/numpy.h"
#include "weft/passes/inline_calls.h"
#include "weft/passes/insert_runtime_assertions.h"
#include "weft/passes/merge_nodes.h"
#include "weft/passes/pass_runner.h"
#include "weft/passes/shape_prop.h"
#include "weft/passes/verify.h"

// captures from the inside
#include "weft/capture/compilation_unit.h"
#include "weft/capture/compiled_function.h"
#include "weft/capture/fork.h"
#include "weft/capture/inlining.h"
#include "weft/capture/optimized.h"
#include "weft/capture/trace_graph.h"
#include "weft/capture/trace_tools.h"
#include "weft/capture/traced.h"
#include "weft/capture/var.h"

// exported programs
#include "weft/export/dim.h"
#include "weft/export/dynamic_shapes.h"
#include "weft/export/errors.h"
#include "weft/export/exported_program.h"

// ahead-of-time autograd: back ends and partitioners
#include "weft/aot/compile_cache.h"
#include "weft/aot/compiler.h"
#include "weft/aot/description.h"
#include "weft/aot/export_module.h"
#include "weft/aot/partition.h"

// below tensors: memory, devices, numbers, messages
#include "weft/base/allocator.h"
#include "weft/base/device.h"
#include "weft/base/device_event.h"
#include "weft/base/dtype.h"
#include "weft/base/function_ref.h"
#include "weft/base/numbers.h"
#include "weft/base/ref.h"
#include "weft/base/stack_trace.h"
#include "weft/base/warning.h"
#include "weft/core/storage.h"
