#pragma once

#include <map>
#include <string>
#include <vector>

#include "export/leaf_shapes.h"
#include "weft/ops/fake_converter.h"
#include "weft/sym/shape_env.h"

namespace weft {

// The sizes of a program's arguments that were declared, as symbols: one for each root of a Dim, and one for
// each size that has a hint only.
class DeclaredSizes {
 public:
  // A size of an argument that is a symbol or follows from one.
  struct Use {
    DimSpec spec;
    sym::Source source;
    SymInt size;
  };
  struct Root {
    Dim dim;
    const sym::Expr* symbol;
    std::vector<size_t> uses;  // into `uses()`; derived ones too
  };

  // An error for examples that contradict their declarations. `sources` are those of the leaves.
  DeclaredSizes(ShapeEnv& env, std::vector<LeafShape> shapes, const ValueList& leaves,
                const std::vector<sym::Source>& sources);

  // What becomes of the sizes of a leaf that is a tensor.
  FakeRequest request(size_t leaf) const;
  // What stands for a leaf that is a number: a symbol, or the number itself.
  Value number(size_t leaf) const;

  const std::vector<Use>& uses() const { return uses_; }
  const std::vector<Root>& roots() const { return roots_; }
  // Null for a symbol that no Dim is the root of.
  const Root* root_of(const sym::Expr* symbol) const;
  // Whether a symbol comes from a hint.
  const Use* hinted(const sym::Expr* symbol) const;

 private:
  struct Example {
    const Dim* dim;
    sym::Source source;
    int64_t size;
  };
  void check_static(const DimSpec& spec, int64_t size, const sym::Source& source) const;
  void check_examples(const std::vector<Example>& examples);
  SymInt symbol_for(const DimSpec& spec, int64_t size, const sym::Source& source);
  SymInt symbol_for_dim(const Dim& dim, const sym::Source& source, const std::string& name);

  ShapeEnv& env_;
  const ValueList& leaves_;
  const std::vector<sym::Source>& sources_;
  std::vector<std::vector<std::optional<SymInt>>> sizes_;  // by leaf and dimension; nothing where static
  std::vector<Use> uses_;
  std::vector<Root> roots_;
  std::map<std::string, int64_t> root_values_;  // at the example
  int64_t next_ = 0;                            // of the names s0, s1, ...
};

}  // namespace weft
