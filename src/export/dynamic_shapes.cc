#include "weft/export/dynamic_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "export/leaf_shapes.h"
#include "weft/base/error.h"

namespace weft {

ShapeSpec::ShapeSpec(std::initializer_list<std::pair<int64_t, DimSpec>> dims)
    : ShapeSpec(by_dim({dims.begin(), dims.end()})) {}

ShapeSpec ShapeSpec::by_dim(std::map<int64_t, DimSpec> dims) {
  ShapeSpec spec;
  spec.kind_ = Kind::kByDim;
  spec.dims_ = std::move(dims);
  return spec;
}
ShapeSpec ShapeSpec::each(std::vector<DimSpec> dims) {
  ShapeSpec spec;
  spec.kind_ = Kind::kAllDims;
  spec.all_dims_ = std::move(dims);
  return spec;
}
ShapeSpec ShapeSpec::list(std::vector<ShapeSpec> elements) {
  ShapeSpec spec;
  spec.kind_ = Kind::kElements;
  for (ShapeSpec& element : elements) spec.elements_.emplace_back("", std::move(element));
  return spec;
}
ShapeSpec ShapeSpec::dict(std::vector<std::pair<std::string, ShapeSpec>> entries) {
  ShapeSpec spec;
  spec.kind_ = Kind::kEntries;
  spec.elements_ = std::move(entries);
  return spec;
}
ShapeSpec ShapeSpec::number(DimHint hint) { return each({hint}); }

std::string ShapeSpec::to_string() const {
  std::vector<std::string> parts;
  for (const auto& [dim, spec] : dims_) parts.push_back(fmt::format("{}: {}", dim, spec.to_string()));
  for (const DimSpec& spec : all_dims_) parts.push_back(spec.to_string());
  for (const auto& [name, spec] : elements_)
    parts.push_back(kind_ == Kind::kEntries ? fmt::format("'{}': {}", name, spec.to_string())
                                            : spec.to_string());
  switch (kind_) {
    case Kind::kNone:
      return "None";
    case Kind::kAllDims:
      return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
    case Kind::kElements:
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case Kind::kByDim:
    case Kind::kEntries:
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  __builtin_unreachable();
}

DynamicShapes::DynamicShapes(std::initializer_list<std::pair<std::string, ShapeSpec>> arguments)
    : arguments_(arguments) {}
DynamicShapes::DynamicShapes(const ShapesCollection& collection) : tensors_(collection.tensors()) {}

DynamicShapes DynamicShapes::by_name(std::vector<std::pair<std::string, ShapeSpec>> arguments) {
  DynamicShapes shapes;
  shapes.arguments_ = std::move(arguments);
  return shapes;
}
DynamicShapes DynamicShapes::by_position(std::vector<ShapeSpec> arguments) {
  DynamicShapes shapes;
  shapes.is_by_position_ = true;
  for (ShapeSpec& argument : arguments) shapes.arguments_.emplace_back("", std::move(argument));
  return shapes;
}

void ShapesCollection::set(const Tensor& tensor, ShapeSpec shape) {
  for (const auto& [known, other] : tensors_)
    if (known.is_same(tensor))
      require(other.to_string() == shape.to_string(),
              "ShapesCollection: {} has the shape {} already, and would get {}", describe(tensor),
              other.to_string(), shape.to_string());
  tensors_.emplace_back(tensor, std::move(shape));
}

namespace {

// The declarations of a collection, nested as a value is.
ShapeSpec nested_spec(const Value& value, const std::vector<std::pair<Tensor, ShapeSpec>>& tensors) {
  if (value.is_tensor()) {
    for (const auto& [tensor, shape] : tensors)
      if (tensor.is_same(value.tensor_ref())) return shape;
    return {};
  }
  std::vector<ShapeSpec> elements;
  if (value.is_dict()) {
    std::vector<std::pair<std::string, ShapeSpec>> entries;
    for (const auto& [key, element] : value.to_dict())
      entries.emplace_back(key.is_string() ? std::string(key.to_string_view()) : key.to_string(),
                           nested_spec(element, tensors));
    return ShapeSpec::dict(std::move(entries));
  }
  if (value.is_sequence()) {
    for (const Value& element : value.elements()) elements.push_back(nested_spec(element, tensors));
  } else if (const auto* record = value.object_as<StructObject>()) {
    for (const Value& field : record->fields()) elements.push_back(nested_spec(field, tensors));
  } else {
    return {};
  }
  return ShapeSpec::list(std::move(elements));
}

// Goes through a declaration and the value that it is for.
class Matcher {
 public:
  std::vector<LeafShape> leaves;

  void match(const ShapeSpec& spec, const Value& value, const std::string& where) {
    if (value.is_tensor() || value.is_number()) return match_leaf(spec, value, where);
    if (spec.kind() == ShapeSpec::Kind::kNone) {
      leaves.resize(leaves.size() + tree_leaves(value).size());
      return;
    }
    if (value.is_dict()) return match_dict(spec, value.to_dict(), where);
    if (value.is_sequence()) return match_sequence(spec, value.elements(), {}, where);
    if (const auto* record = value.object_as<StructObject>())
      return match_sequence(spec, record->fields(), record->type()->fields(), where);
    refuse(spec, value, where, "which has no sizes");
  }

 private:
  [[noreturn]] static void refuse(const ShapeSpec& spec, const Value& value, const std::string& where,
                                  const std::string& why) {
    fail("dynamic_shapes at {}: the declaration {} does not fit {}, {}", where, spec.to_string(),
         value.is_tensor() ? describe(value.tensor_ref()) : std::string(value.kind_name()), why);
  }

  void match_leaf(const ShapeSpec& spec, const Value& value, const std::string& where) {
    LeafShape& leaf = leaves.emplace_back();
    const size_t count = value.is_tensor() ? static_cast<size_t>(value.tensor_ref().dim()) : 1;
    switch (spec.kind()) {
      case ShapeSpec::Kind::kNone:
        return;
      case ShapeSpec::Kind::kByDim:
        leaf.dims.resize(count);
        for (const auto& [dim, declared] : spec.dims()) {
          const int64_t at = dim < 0 ? dim + static_cast<int64_t>(count) : dim;
          if (at < 0 || at >= static_cast<int64_t>(count) || !value.is_tensor())
            refuse(spec, value, where, fmt::format("which has no dimension {}", dim));
          leaf.dims[static_cast<size_t>(at)] = declared;
        }
        return;
      case ShapeSpec::Kind::kAllDims:
        if (spec.all_dims().size() != count)
          refuse(spec, value, where, fmt::format("which has {} dimension{}", count, count == 1 ? "" : "s"));
        leaf.dims = spec.all_dims();
        if (!value.is_tensor() && leaf.dims[0].dim())
          refuse(spec, value, where, "since a Dim is a size; use Dim::AUTO or Dim::DYNAMIC for a number");
        return;
      case ShapeSpec::Kind::kElements:
      case ShapeSpec::Kind::kEntries:
        if (value.is_tensor()) refuse(spec, value, where, "which is one tensor; declare its dimensions");
        refuse(spec, value, where, "which is no container");
    }
  }

  // Dimensions in order and elements in order read the same where nothing is declared of them.
  void match_sequence(const ShapeSpec& spec, const ValueList& elements,
                      const std::vector<std::string>& fields, const std::string& where) {
    const Value whole = Value::tuple(elements);
    if (spec.kind() == ShapeSpec::Kind::kEntries && !fields.empty())
      return match_fields(spec, elements, fields, where);
    if (spec.kind() == ShapeSpec::Kind::kAllDims && spec.all_dims().size() == elements.size()) {
      std::vector<ShapeSpec> each;
      for (const DimSpec& dim : spec.all_dims()) each.push_back(of_number(dim));
      return match_sequence(ShapeSpec::list(std::move(each)), elements, fields, where);
    }
    if (spec.kind() != ShapeSpec::Kind::kElements || spec.elements().size() != elements.size())
      refuse(spec, whole, where,
             fmt::format("which has {} element{}: declare each of them (ShapeSpec::list)", elements.size(),
                         elements.size() == 1 ? "" : "s"));
    for (size_t i = 0; i < elements.size(); ++i) {
      // A field that is None is no leaf.
      if (!fields.empty() && elements[i].is_none()) continue;
      match(spec.elements()[i].second, elements[i],
            fields.empty() ? fmt::format("{}[{}]", where, i) : fmt::format("{}.{}", where, fields[i]));
    }
  }
  static ShapeSpec of_number(const DimSpec& dim) {
    return dim.is_dynamic() || dim.size() ? ShapeSpec::each({dim}) : ShapeSpec();
  }

  void match_fields(const ShapeSpec& spec, const ValueList& elements, const std::vector<std::string>& fields,
                    const std::string& where) {
    refuse_unknown(spec, fields, where);
    for (size_t i = 0; i < elements.size(); ++i)
      if (!elements[i].is_none())
        match(entry(spec, fields[i]), elements[i], fmt::format("{}.{}", where, fields[i]));
  }

  void match_dict(const ShapeSpec& spec, const Dict& dict, const std::string& where) {
    std::vector<std::string> keys;
    for (const auto& [key, element] : dict)
      keys.push_back(key.is_string() ? std::string(key.to_string_view()) : key.to_string());
    if (spec.kind() != ShapeSpec::Kind::kEntries)
      refuse(spec, Value(dict), where, "which is a dictionary: declare its entries (ShapeSpec::dict)");
    refuse_unknown(spec, keys, where);
    size_t i = 0;
    for (const auto& [key, element] : dict) {
      match(entry(spec, keys[i]), element, fmt::format("{}['{}']", where, keys[i]));
      ++i;
    }
  }

  static ShapeSpec entry(const ShapeSpec& spec, const std::string& name) {
    for (const auto& [known, element] : spec.elements())
      if (known == name) return element;
    return {};
  }
  static void refuse_unknown(const ShapeSpec& spec, const std::vector<std::string>& names,
                             const std::string& where) {
    for (const auto& [name, element] : spec.elements())
      require(std::ranges::find(names, name) != names.end(),
              "dynamic_shapes at {}: there is no '{}'; there are [{}]", where, name, fmt::join(names, ", "));
  }
};

}  // namespace

DynamicShapes ShapesCollection::dynamic_shapes(const ValueList& args) const {
  std::vector<ShapeSpec> specs;
  for (const Value& arg : args) specs.push_back(nested_spec(arg, tensors_));
  return DynamicShapes::by_position(std::move(specs));
}

namespace {

// One list for a variadic argument, `*args`, is one spec for each of args_0, args_1, ... A list fits neither
// a tensor nor a number.
bool is_of_rest(const ShapeSpec& spec, const ValueList& arguments, size_t first) {
  return spec.kind() == ShapeSpec::Kind::kElements && first < arguments.size() &&
         spec.elements().size() == arguments.size() - first && !arguments[first].is_sequence();
}
void spread(const ShapeSpec& spec, size_t first, std::vector<ShapeSpec>& specs) {
  for (size_t i = 0; i < spec.elements().size(); ++i) specs[first + i] = spec.elements()[i].second;
}

}  // namespace

std::vector<LeafShape> leaf_shapes(const DynamicShapes& shapes, const std::vector<std::string>& names,
                                   const ValueList& arguments) {
  std::vector<ShapeSpec> specs(arguments.size());
  if (!shapes.tensors().empty()) {
    for (size_t i = 0; i < arguments.size(); ++i) specs[i] = nested_spec(arguments[i], shapes.tensors());
  } else if (shapes.is_by_position()) {
    require(shapes.arguments().size() <= arguments.size(),
            "dynamic_shapes: {} arguments are declared by position, but {} are given",
            shapes.arguments().size(), arguments.size());
    for (size_t i = 0; i < shapes.arguments().size(); ++i) specs[i] = shapes.arguments()[i].second;
    const size_t last = shapes.arguments().size() - 1;
    if (const ShapeSpec& spec = shapes.arguments()[last].second; is_of_rest(spec, arguments, last))
      spread(spec, last, specs);
  } else {
    for (const auto& [name, spec] : shapes.arguments()) {
      const auto found = std::ranges::find(names, name);
      const auto rest = std::ranges::find(names, name + "_0");
      const auto first = static_cast<size_t>(rest - names.begin());
      if (found == names.end() && is_of_rest(spec, arguments, first)) {
        spread(spec, first, specs);
        continue;
      }
      require(found != names.end(), "dynamic_shapes: there is no argument '{}'; there are [{}]", name,
              fmt::join(names, ", "));
      specs[static_cast<size_t>(found - names.begin())] = spec;
    }
  }
  Matcher matcher;
  for (size_t i = 0; i < arguments.size(); ++i) matcher.match(specs[i], arguments[i], names[i]);
  return std::move(matcher.leaves);
}

DynamicDim dynamic_dim(const Value& value, int64_t dim) {
  require(value.is_tensor(), "Expected tensor as input to dynamic_dim, but got {}", value.kind_name());
  const Tensor& tensor = value.tensor_ref();
  require(tensor.dim() > 0, "Cannot mark 0-dimension tensors to be dynamic");
  require(dim >= 0 && dim < tensor.dim(),
          "Expected the dimension passed to dynamic_dim to be in the range [0:{}], but got {}",
          tensor.dim() - 1, dim);
  return {tensor, dim};
}

}  // namespace weft
