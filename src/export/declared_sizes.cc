#include "export/declared_sizes.h"

#include <fmt/format.h>

#include "weft/export/errors.h"

namespace weft {
namespace {

using sym::Source;
using sym::ValueRange;

// "[3, inf]", as declared.
std::string range_text(const ValueRange& range) {
  return fmt::format("[{}, {}]", range.lo,
                     range.hi == ValueRange::kInf ? "int_oo" : std::to_string(range.hi));
}

// What a capture may take for granted. Programs are the same for all sizes from 2 on, or else one example
// stands for too little; that no more than one such size is declared does not make it a number.
ValueRange captured_range(const ValueRange& declared, int64_t example) {
  if (example < 2) return declared;
  return {std::max<int64_t>(declared.lo, 2), std::max<int64_t>(declared.hi, 3)};
}

}  // namespace

DeclaredSizes::DeclaredSizes(ShapeEnv& env, std::vector<LeafShape> shapes, const ValueList& leaves,
                             const std::vector<Source>& sources)
    : env_(env), leaves_(leaves), sources_(sources), sizes_(leaves.size()) {
  std::vector<Example> examples;
  auto each_size = [&](auto&& f) {
    for (size_t i = 0; i < leaves.size(); ++i)
      for (size_t d = 0; d < shapes[i].dims.size(); ++d) {
        const bool is_tensor = leaves[i].is_tensor();
        if (is_tensor && leaves[i].tensor_ref().is_symbolic()) continue;
        if (!is_tensor && leaves[i].kind() != Value::Kind::kInt) continue;
        const int64_t size =
            is_tensor ? leaves[i].tensor_ref().size(static_cast<int64_t>(d)).plain() : leaves[i].to_int();
        f(i, d, shapes[i].dims[d], size, is_tensor ? sources[i].size(static_cast<int64_t>(d)) : sources[i]);
      }
  };
  each_size([&](size_t, size_t, const DimSpec& spec, int64_t size, const Source& source) {
    check_static(spec, size, source);
    if (spec.dim()) examples.push_back({spec.dim(), source, size});
  });
  check_examples(examples);
  each_size([&](size_t leaf, size_t d, const DimSpec& spec, int64_t size, const Source& source) {
    if (!spec.is_dynamic()) return;
    sizes_[leaf].resize(d + 1);
    sizes_[leaf][d] = symbol_for(spec, size, source);
  });
}

void DeclaredSizes::check_static(const DimSpec& spec, int64_t size, const Source& source) const {
  if (!spec.size() || *spec.size() == size) return;
  throw ConstraintViolationError(
      fmt::format("Static shape constraint of {} does not match input size of {}, for {}; declare {}, or "
                  "nothing at all, or give an example of that size",
                  *spec.size(), size, source.guard_text(), size));
}

// Every example agrees with the declaration: one range for a name, one value for a root.
void DeclaredSizes::check_examples(const std::vector<Example>& examples) {
  std::map<std::string, const Dim*> known;
  for (const Example& example : examples) {
    const Dim root = example.dim->root();
    auto [found, is_new] = known.emplace(root.name(), example.dim);
    if (!is_new && !(found->second->root() == root))
      throw ConstraintViolationError(
          fmt::format("Found different definitions {} and {} for the same symbolic dimension {}; declare it "
                      "once, and use "
                      "that Dim everywhere",
                      found->second->root().to_string(), root.to_string(), root.name()));
  }
  // Values that are given come before those that are found out.
  for (const bool is_derived : {false, true})
    for (const Example& example : examples) {
      const Dim& dim = *example.dim;
      if (dim.is_derived() != is_derived || root_values_.contains(dim.root_name())) continue;
      const std::optional<int64_t> value = dim.root_value(example.size);
      if (!value)
        throw ConstraintViolationError(fmt::format(
            "Expected shape[{}] = {} of input Tensor to be of the form {}, where {} is an integer; it is {}",
            example.source.dim, example.size, dim.name(), dim.root_name(), example.source.guard_text()));
      root_values_.emplace(dim.root_name(), *value);
    }
  for (const Example& example : examples) {
    const Dim& dim = *example.dim;
    const int64_t root = root_values_.at(dim.root_name());
    const int64_t expected = dim.scale() * root + dim.offset();
    if (example.size != expected)
      throw ConstraintViolationError(
          fmt::format("Expected input {} size to be equal to {}, where {} = {}, but got {}",
                      example.source.guard_text(), dim.name(), dim.root_name(), root, example.size));
    const ValueRange range = dim.range();
    if (!range.contains(example.size))
      throw ConstraintViolationError(fmt::format(
          "Constraints violated ({})!\n  - The example size {} = {} not in range {}, which {} declares\n"
          "Export with an example in the range, or declare a wider one",
          dim.root_name(), example.source.guard_text(), example.size, range_text(range),
          dim.root().to_string()));
  }
}

SymInt DeclaredSizes::symbol_for(const DimSpec& spec, int64_t size, const Source& source) {
  const std::string name = fmt::format("s{}", next_++);
  SymInt symbol = size;
  if (const Dim* dim = spec.dim()) {
    symbol = symbol_for_dim(*dim, source, name);
  } else {
    const bool is_general = size >= 2;
    if (!is_general && *spec.hint() == DimHint::kAuto && source.kind == Source::Kind::kSize) return size;
    const bool is_size = source.kind == Source::Kind::kSize;
    const ValueRange range = {is_size ? (is_general ? 2 : 0) : ValueRange::kNegInf, ValueRange::kInf};
    symbol = SymInt::from_expr(env_.add_symbol(
        {.name = name, .hint = size, .declared = range, .is_size = is_size, .sources = {source}}));
  }
  uses_.push_back({spec, source, symbol});
  return symbol;
}

SymInt DeclaredSizes::symbol_for_dim(const Dim& dim, const Source& source, const std::string& name) {
  auto root = std::ranges::find_if(roots_, [&](const Root& r) { return r.dim.name() == dim.root_name(); });
  if (root == roots_.end()) {
    const int64_t example = root_values_.at(dim.root_name());
    // The size has the name that comes first, also where it follows from its root.
    const sym::Expr* symbol = env_.add_symbol({.name = dim.is_derived() ? fmt::format("s{}", next_++) : name,
                                               .hint = example,
                                               .declared = captured_range(dim.root().range(), example),
                                               .is_size = true,
                                               .sources = {}});
    root = roots_.insert(roots_.end(), Root{dim.root(), symbol, {}});
  }
  root->uses.push_back(uses_.size());
  if (!dim.is_derived()) env_.add_source(root->symbol, source);
  return dim.scale() * SymInt::from_expr(root->symbol) + dim.offset();
}

FakeRequest DeclaredSizes::request(size_t leaf) const {
  const Tensor& tensor = leaves_[leaf].tensor_ref();
  FakeRequest request(sources_[leaf], FakeRequest::fixed(tensor.dim()).dims);
  for (size_t d = 0; d < sizes_[leaf].size(); ++d)
    if (sizes_[leaf][d]) request.dims[d] = {.policy = sym::DimPolicy::kDynamic, .size = sizes_[leaf][d]};
  return request.without_base();
}

Value DeclaredSizes::number(size_t leaf) const {
  if (sizes_[leaf].empty() || !sizes_[leaf][0]) return leaves_[leaf];
  return *sizes_[leaf][0];
}

const DeclaredSizes::Root* DeclaredSizes::root_of(const sym::Expr* symbol) const {
  for (const Root& root : roots_)
    if (root.symbol == symbol) return &root;
  return nullptr;
}

const DeclaredSizes::Use* DeclaredSizes::hinted(const sym::Expr* symbol) const {
  for (const Use& use : uses_)
    if (use.spec.hint() && use.size.is_symbolic() && use.size.expr() == symbol) return &use;
  return nullptr;
}

}  // namespace weft
