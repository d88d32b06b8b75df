#pragma once

#include "aot/functional_values.h"
#include "weft/aot/description.h"
#include "weft/core/callable.h"

namespace weft::aot {

struct DescribeOptions {
  // Whether writes stay in the graph where nothing speaks against it.
  bool keep_input_mutations = false;
};

// Runs `f` once on `inputs`, which have no data, and tells what it does. `f` takes the leaves of the
// arguments and gives a tree. A FakeMode must be open.
CallDescription describe_call(const ValueFunction& f, const ValueList& inputs,
                              const DescribeOptions& options);

// Outputs become values: whoever runs an exported graph does not make views anew.
void forget_aliases(CallDescription& description);

}  // namespace weft::aot
