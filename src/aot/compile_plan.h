#pragma once

#include "aot/trace_call.h"
#include "weft/aot/aot_function.h"

namespace weft::aot {

// Everything that is found out about a call before somebody compiles its graph. Never changed once it is
// made.
struct CompilePlan {
  // The call as it was given, then without duplicates, then over synthetic bases: those that there are.
  struct Stage {
    ValueList fakes;  // none in a plan that was read from a file: its sizes are numbers
    CallDescription description;
  };
  std::vector<Stage> stages;
  TracedCall traced;
  // Constants of the traced graph that are attributes of the program: by their names in the graph, and there.
  std::vector<std::pair<std::string, std::string>> constants;
};

// What a plan for this call depends on. An error that says why where a call cannot be kept.
std::string plan_key(const GraphModule& program, const ValueList& examples, const AotOptions& options);

// 32 hexadecimal digits that tell contents apart.
std::string digest(std::string_view bytes);

// The tensors that a graph names and that its caller does not give, by the path they are found under.
std::vector<std::pair<std::string, Tensor>> constants_of(const GraphModule& module);

}  // namespace weft::aot
