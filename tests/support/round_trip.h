#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "support/graph_texts.h"
#include "weft/base/error.h"
#include "weft/graph/compare.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"

namespace weft::testing {

// How many graphs this program has read back so far.
inline int round_trips = 0;

// Both texts of a graph read back as the same graph, and are written again as they were.
inline void expect_round_trips(const Graph& graph) {
  if (!has_quoted_text(graph)) return;
  std::atomic_ref(round_trips).fetch_add(1, std::memory_order_relaxed);
  try {
    const std::string quoted = quoted_text(graph);
    const Graph from_quoted = parse_graph(quoted, {.missing_operators = true});
    EXPECT_EQ(difference(graph, from_quoted), "") << quoted;
    EXPECT_EQ(quoted_text(from_quoted), quoted);
    from_quoted.lint();
    if (!code_can_say(graph)) return;
    const std::string code = graph.code();
    const Graph from_code = parse_code(code, {.missing_operators = true});
    EXPECT_EQ(difference(graph, from_code), "") << code;
    EXPECT_EQ(from_code.code(), code);
    from_code.lint();
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\nfor " << graph.to_string();
  }
}

}  // namespace weft::testing
