#pragma once

// All of weft. Each header stands alone too, for programs that care about their compile time.

// base: errors, warnings, stack traces, types, devices, memory, threads, random numbers, JSON, line diffs
#include "weft/base/allocator.h"
#include "weft/base/arena.h"
#include "weft/base/device.h"
#include "weft/base/device_event.h"
#include "weft/base/diff.h"
#include "weft/base/dtype.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/base/json.h"
#include "weft/base/numbers.h"
#include "weft/base/object_pool.h"
#include "weft/base/parallel.h"
#include "weft/base/random.h"
#include "weft/base/ref.h"
#include "weft/base/rule.h"
#include "weft/base/small_vector.h"
#include "weft/base/stack_trace.h"
#include "weft/base/warning.h"

// sym: sizes as expressions
#include "weft/sym/expr.h"
#include "weft/sym/shape_env.h"
#include "weft/sym/sym_int.h"
#include "weft/sym/value_range.h"

// core: tensors and values
#include "weft/core/argument_names.h"
#include "weft/core/callable.h"
#include "weft/core/from_data.h"
#include "weft/core/future.h"
#include "weft/core/printable_box.h"
#include "weft/core/pytree.h"
#include "weft/core/scalar.h"
#include "weft/core/spans.h"
#include "weft/core/storage.h"
#include "weft/core/struct.h"
#include "weft/core/tensor.h"
#include "weft/core/tensor_impl.h"
#include "weft/core/typed_value.h"
#include "weft/core/value.h"
#include "weft/core/view_step.h"

// ops: the operators, and how their calls are observed
#include "weft/ops/autocast.h"
#include "weft/ops/boxing.h"
#include "weft/ops/close.h"
#include "weft/ops/conversions.h"
#include "weft/ops/define.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"
#include "weft/ops/layers.h"
#include "weft/ops/mode.h"
#include "weft/ops/nested.h"
#include "weft/ops/op_def.h"
#include "weft/ops/operator.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/operators.h"
#include "weft/ops/overloads.h"
#include "weft/ops/recorder.h"
#include "weft/ops/schema.h"

// autograd: gradients
#include "weft/autograd/anomaly.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/data.h"
#include "weft/autograd/function.h"
#include "weft/autograd/grad_node.h"
#include "weft/autograd/gradcheck.h"

// func: function transforms
#include "weft/func/control_flow.h"
#include "weft/func/func.h"
#include "weft/func/functionalize.h"
#include "weft/func/out_dtype.h"

// nn: modules, layers, optimizers
#include "weft/nn/activations.h"
#include "weft/nn/functional.h"
#include "weft/nn/functional_call.h"
#include "weft/nn/init.h"
#include "weft/nn/layers.h"
#include "weft/nn/module.h"
#include "weft/nn/module_text.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/optim.h"
#include "weft/nn/spatial.h"

// models: the model zoo
#include "weft/models/resnet.h"

// graph: programs as graphs
#include "weft/graph/compare.h"
#include "weft/graph/graph.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/interpreter.h"
#include "weft/graph/manipulation.h"
#include "weft/graph/module_stack.h"
#include "weft/graph/node.h"
#include "weft/graph/parse.h"
#include "weft/graph/pattern.h"
#include "weft/graph/picture.h"
#include "weft/graph/script_view.h"
#include "weft/graph/text.h"

// passes: one transformation or check a file
#include "weft/passes/merge_nodes.h"
#include "weft/passes/pass_runner.h"
#include "weft/passes/shape_prop.h"
#include "weft/passes/verify.h"

// capture: programs become graphs
#include "weft/capture/compilation_unit.h"
#include "weft/capture/exportability.h"
#include "weft/capture/fork.h"
#include "weft/capture/functional_capture.h"
#include "weft/capture/inlining.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/optimized.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/capture/trace.h"
#include "weft/capture/trace_graph.h"
#include "weft/capture/trace_switches.h"
#include "weft/capture/trace_tools.h"
#include "weft/capture/traced.h"
#include "weft/capture/var.h"
#include "weft/capture/verify.h"

// io: files
#include "weft/io/folder.h"
#include "weft/io/graph_file.h"
#include "weft/io/safetensors.h"
