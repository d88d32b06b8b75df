#pragma once

#include "weft/base/stack_trace.h"
#include "weft/capture/trace.h"

namespace weft {

// A function or method that is traced.
struct TracedCode {
  ValueFunction function;
  std::string name;
  std::string arg_names;
  const nn::Module* root;  // null for a function
};

struct Recording {
  GraphModule module;
  Value result;
  std::unordered_map<const Node*, StackTrace> traces;  // where in the program each node was recorded
};

// The arguments as a tuple, from whatever a caller gives for them.
Value example_arguments(const Value& inputs);
Dict as_dict(const Kwargs& kwargs);
Kwargs as_kwargs(const Value& given);
// Runs the code once and writes down what it did.
Recording record_trace(const TracedCode& code, const Value& arguments, const Kwargs& kwargs,
                       const TraceOptions& options);
// Runs it again, recorded and not, on copies of the inputs, and compares.
void check_trace(const TracedCode& code, const Recording& traced, const Value& arguments,
                 const Kwargs& kwargs, const TraceOptions& options);

}  // namespace weft
