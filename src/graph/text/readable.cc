#include "graph/text/code.h"
#include "weft/graph/graph_module.h"

namespace weft {
namespace {

// Lines with something on them move to the right.
void append_indented(std::string& out, std::string_view text, size_t spaces) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    const std::string_view line = text.substr(0, end + 1);
    if (line != "\n") out.append(spaces, ' ');
    out += line;
    text.remove_prefix(end + 1);
  }
}

// The classes of graph modules inside a module stand in its own, under the names of the children.
void append_module(std::string& out, const GraphModule& module, std::string_view class_name, size_t indent,
                   const ReadableOptions& options) {
  const std::optional<CallSpec>& spec = module.call_spec();
  append_indented(out, readable_code(module.graph(), class_name, options, spec ? &*spec : nullptr), indent);
  for (const nn::ModuleState::Child& child : module.state()->children) {
    std::optional<GraphModule> inner;
    if (child.callable) inner = graph_module_in(Value(Ref<ValueObject>(child.callable)));
    if (!inner) continue;
    out += '\n';
    append_module(out, *inner, child.name, indent + 4, options);
  }
}

}  // namespace

std::string readable(const GraphModule& module, const ReadableOptions& options) {
  std::string text;
  append_module(text, module, module.state()->class_name, 0, options);
  return text;
}

}  // namespace weft
