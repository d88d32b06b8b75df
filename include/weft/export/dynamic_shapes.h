#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/pytree.h"
#include "weft/export/dim.h"

namespace weft {

// What the sizes of one argument are declared to be: of a tensor by dimension, of a container for each of its
// elements. What is left out has the example's sizes.
//
//   ShapeSpec{{0, batch}}                        dimension 0 of a tensor
//   ShapeSpec::each({batch, std::nullopt, 3})    all dimensions of a tensor, in order
//   ShapeSpec::list({a, b})                      the elements of a list or tuple, the fields of a struct
//   ShapeSpec::dict({{"key", a}})                the entries of a dictionary, the fields of a struct by name
class ShapeSpec {
 public:
  enum class Kind : uint8_t { kNone, kByDim, kAllDims, kElements, kEntries };

  ShapeSpec() = default;
  ShapeSpec(std::nullopt_t) {}                // NOLINT(google-explicit-constructor)
  ShapeSpec(std::initializer_list<std::pair<int64_t, DimSpec>> dims);  // NOLINT(google-explicit-constructor)
  static ShapeSpec by_dim(std::map<int64_t, DimSpec> dims);
  static ShapeSpec each(std::vector<DimSpec> dims);
  static ShapeSpec list(std::vector<ShapeSpec> elements);
  static ShapeSpec dict(std::vector<std::pair<std::string, ShapeSpec>> entries);
  // Of an integer: AUTO or DYNAMIC.
  static ShapeSpec number(DimHint hint);

  Kind kind() const { return kind_; }
  const std::map<int64_t, DimSpec>& dims() const { return dims_; }
  const std::vector<DimSpec>& all_dims() const { return all_dims_; }
  // With empty names for a list.
  const std::vector<std::pair<std::string, ShapeSpec>>& elements() const { return elements_; }
  std::string to_string() const;

 private:
  Kind kind_ = Kind::kNone;
  std::map<int64_t, DimSpec> dims_;
  std::vector<DimSpec> all_dims_;
  std::vector<std::pair<std::string, ShapeSpec>> elements_;
};

class ShapesCollection;

// What the sizes of all arguments are declared to be, by the names of the arguments or by position:
//   {{"x", {{0, batch}}}, {"y", {{0, batch}, {1, 4}}}}
//   DynamicShapes::by_position({{{0, batch}}, {}})
class DynamicShapes {
 public:
  DynamicShapes() = default;
  // By name; what is not named is static.
  DynamicShapes(std::initializer_list<std::pair<std::string, ShapeSpec>> arguments);
  static DynamicShapes by_name(std::vector<std::pair<std::string, ShapeSpec>> arguments);
  // One for each argument, in the order in which forward declares them.
  static DynamicShapes by_position(std::vector<ShapeSpec> arguments);
  DynamicShapes(const ShapesCollection& collection);  // NOLINT(google-explicit-constructor)

  bool empty() const { return arguments_.empty() && tensors_.empty(); }
  bool is_by_position() const { return is_by_position_; }
  // With empty names by position.
  const std::vector<std::pair<std::string, ShapeSpec>>& arguments() const { return arguments_; }
  // For tensors among the arguments, wherever they are.
  const std::vector<std::pair<Tensor, ShapeSpec>>& tensors() const { return tensors_; }

 private:
  bool is_by_position_ = false;
  std::vector<std::pair<std::string, ShapeSpec>> arguments_;
  std::vector<std::pair<Tensor, ShapeSpec>> tensors_;
};

// Sizes by the tensors that the program is exported with.
//   ShapesCollection shapes;
//   shapes.set(inputs.image, {{0, batch}});
//   export_program(net, {inputs}, {.dynamic_shapes = shapes});
class ShapesCollection {
 public:
  // An error for a tensor that has another declaration.
  void set(const Tensor& tensor, ShapeSpec shape);
  // Written out for these arguments: one spec for each, nested as they are.
  DynamicShapes dynamic_shapes(const ValueList& args) const;
  const std::vector<std::pair<Tensor, ShapeSpec>>& tensors() const { return tensors_; }

 private:
  std::vector<std::pair<Tensor, ShapeSpec>> tensors_;
};

// One dimension of an example input as PyTorch's first exporter declared it. An error for what is no tensor,
// has no dimensions, or not that one.
struct DynamicDim {
  Tensor tensor;
  int64_t dim;
};
DynamicDim dynamic_dim(const Value& value, int64_t dim);

}  // namespace weft
