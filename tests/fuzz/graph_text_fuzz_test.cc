// A libFuzzer program: any bytes are a graph for the two parsers, or an error that names line and column. A
// graph is sound, and both of its texts mean it.
#include <cstdio>
#include <cstdlib>

#include "support/graph_texts.h"
#include "weft/base/error.h"
#include "weft/graph/compare.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"

namespace weft {
namespace {

void check(bool ok, const char* what, const std::string& detail) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

void check_texts(const Graph& graph) {
  graph.lint();
  const std::string quoted = quoted_text(graph);
  check(difference(parse_graph(quoted), graph).empty(), "quoted_text means another graph", quoted);
  if (!testing::code_can_say(graph)) return;
  const std::string code = graph.code();
  check(difference(parse_code(code), graph).empty(), "code means another graph", code);
}

void check_parser(std::string_view text, Graph (*parse)(std::string_view)) {
  std::optional<Graph> graph;
  try {
    graph = parse(text);
  } catch (const FormatError& error) {
    check(error.message().find(": line ") != std::string::npos, "an error without a line", error.message());
    return;
  }
  check_texts(*graph);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  weft::check_parser(text, weft::parse_code);
  weft::check_parser(text, weft::parse_graph);
  return 0;
}
