// Part of every test program: each graph that any test makes a module of or runs must have texts that read
// back as the same graph.
#include "graph/run/program.h"
#include "support/round_trip.h"

namespace weft::testing {
namespace {

[[maybe_unused]] const bool kWatches = [] {
  detail::graph_probe = [](const Graph& graph) { expect_round_trips(graph); };
  return true;
}();

}  // namespace
}  // namespace weft::testing
