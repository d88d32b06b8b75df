#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "weft/export/exported_program.h"

namespace weft {

// Tensors that a graph reads become placeholders: parts of a program name all that they need.
class ConstantLifter {
 public:
  // `named` are those that have a name in the module; another becomes lifted_tensor_0, ...
  ConstantLifter(const ExportedProgram::NamedTensors& named, const ExportedProgram::NamedTensors& taken);

  // The new placeholders stand before the placeholder `position`: first those with names, in the order of
  // `named`, then others as they are read. One spec for each of them.
  std::vector<InputSpec> lift(GraphModule& module, size_t position);
  // The same with the placeholders for attributes that are objects of custom classes, which stand behind.
  std::vector<InputSpec> lift_objects(GraphModule& module, size_t position);
  // The tensors that had no name.
  const ExportedProgram::NamedTensors& literals() const { return literals_; }
  const std::vector<std::pair<std::string, Value>>& objects() const { return objects_; }

 private:
  std::string unused_name();

  std::unordered_map<uint64_t, std::string> names_;  // by serial number
  std::unordered_map<uint64_t, size_t> order_;       // of those that were named from the start
  std::vector<std::string> taken_;
  ExportedProgram::NamedTensors literals_;
  std::vector<std::pair<std::string, Value>> objects_;
  int64_t next_ = 0;
};

}  // namespace weft
