#include "weft/nn/module_text.h"

#include <ostream>

namespace weft::nn {
namespace {

void write(const ModuleState& module, const std::string& margin, std::string& text) {
  text += (module.class_name.empty() ? "Module" : module.class_name) + "(";
  for (const ModuleState::Child& child : module.children) {
    text += "\n" + margin + "  (" + child.name + "): ";
    write(*child.state, margin + "  ", text);
  }
  text += module.children.empty() ? ")" : "\n" + margin + ")";
}

}  // namespace

std::string module_text(const Module& module) {
  std::string text;
  write(*module.state(), "", text);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module_text(module); }

}  // namespace weft::nn
