#pragma once

// For people who write models and capture them. Authors of operators, passes, extensions and back ends
// include weft/extend.h instead. Each header stands alone too, for programs that care about their compile
// time.

// clang-format off: in the order in which a newcomer needs them

// tensors, and the operators on them
#include "weft/core/tensor.h"
#include "weft/core/from_data.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"
#include "weft/ops/indexing.h"
#include "weft/ops/conversions.h"
#include "weft/ops/close.h"
#include "weft/base/random.h"
#include "weft/base/parallel.h"
#include "weft/base/error.h"

// gradients
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/ops/autocast.h"

// modules and their training
#include "weft/nn/layers.h"
#include "weft/nn/functional.h"
#include "weft/nn/init.h"
#include "weft/nn/optim.h"
#include "weft/nn/lr_scheduler.h"
#include "weft/nn/clip_grad.h"
#include "weft/io/safetensors.h"

// function transforms
#include "weft/func/func.h"
#include "weft/func/control_flow.h"
#include "weft/nn/functional_call.h"

// programs as graphs
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/capture/trace.h"
#include "weft/aot/aot_function.h"
#include "weft/aot/compile.h"
#include "weft/aot/train_step.h"
#include "weft/export/export_program.h"
#include "weft/io/pt2.h"
// clang-format on
