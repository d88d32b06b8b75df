#include <algorithm>

#include "commands.h"
#include "graph_json.h"
#include "html_page.h"
#include "model_file.h"
#include "text_output.h"
#include "weft/graph/picture.h"
#include "weft/graph/text.h"

namespace weft::cli {

int show(const ShowCommand& command) {
  const std::string format = command.json ? "json" : command.format;
  const ExportedProgram program = load_model(command);
  const GraphModule& module = program.graph_module();
  std::string text;
  if (format == "code") text = module.code();
  else if (format == "graph") text = module.graph().to_string();
  else if (format == "readable") text = program.to_string();
  else if (format == "svg") text = svg(module.graph());
  else if (format == "html") text = html_page(program, command.model);
  else if (format == "json") text = graph_json(program).to_pretty_text();
  else
    throw UsageError(
        fmt::format("there is no format '{}'; there are code, graph, readable, svg, html and json", format));
  // Texts of graphs begin and end with space that is for Python.
  const size_t first = std::min(text.find_first_not_of('\n'), text.size()),
               last = text.find_last_not_of(" \n");
  write_text(text.substr(first, last + 1 - first), command.output);
  return kFine;
}

}  // namespace weft::cli
