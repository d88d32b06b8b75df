#pragma once

#include "aot/call_steps.h"
#include "aot/extension_tree.h"
#include "aot/symbol_checks.h"
#include "weft/core/callable.h"

// The steps before the graph: what its inputs are made of.

namespace weft::aot {

// Refuses inputs that the graphs are not made for: another kind, type or size, a gradient that the graph
// would lose, a tensor that is no duplicate any more.
class CheckInputs final : public CallStep {
 public:
  struct Given {
    Value like;  // the example: a tensor without data, or a plain value
    ExtensionTree tree = {};
    bool requires_grad = false;
    std::optional<size_t> duplicate_of;
    bool is_written = false;
    size_t memory = 0;  // inputs of one number looked at one storage
  };
  CheckInputs(std::string graph, std::vector<Given> given, bool is_recorded);
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

 private:
  void note_form(const Given& given);
  bool has_form(size_t index, const Value& input, bool records) const;
  void check(size_t index, const Value& input, Args all) const;
  void check_tensor(size_t index, const Tensor& input) const;
  void check_memory(size_t index, Args all) const;

  std::string graph_;
  std::vector<Given> given_;
  // By input: what is asked of it, where that is a form and nothing else. Sizes, then strides, are in
  // `numbers_`.
  struct Form {
    bool is_all = false;
    bool may_require_grad = false;
    DType dtype = DType::kFloat32;
    Device device;
    uint32_t first = 0, dims = 0;
  };
  std::vector<Form> forms_;
  std::vector<int64_t> numbers_;
  SymbolChecks symbols_;
  bool is_recorded_;  // whether gradients were recorded when it was compiled
};

// A tensor that is given more than once is one input of the graph.
class DropDuplicates final : public CallStep {
 public:
  // Null where none of `inputs` that is given twice is written to, or changed otherwise: each is an input
  // then.
  static std::unique_ptr<DropDuplicates> needed_for(const ValueList& inputs,
                                                    const CallDescription& description);
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

  ValueList without_duplicates(Args inputs) const;
  // The same function of the inputs that are left.
  ValueFunction over_the_rest(ValueFunction f) const;

 private:
  std::vector<size_t> first_;  // by input: the index of what it is, among those that are left
  std::vector<size_t> kept_;   // inputs
};

// Inputs that share elements, one of which is written to, are views of one input of the graph: their base.
class SyntheticBases final : public CallStep {
 public:
  // Null where no such inputs are among these.
  static std::unique_ptr<SyntheticBases> needed_for(const ValueList& inputs,
                                                    const CallDescription& description);
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

  // The bases, then the other inputs.
  ValueList with_bases(Args inputs) const;
  // The same function of these. `inputs` are what the views are like, at every call: their sizes are numbers.
  // Where members get another geometry, they come after the result.
  ValueFunction over_bases(ValueFunction f, const ValueList& inputs) const;

 private:
  struct Changed {
    size_t input;
    bool is_silent;  // autograd does not follow
  };
  void check_geometry(Args inputs) const;
  std::vector<std::vector<size_t>> groups_;  // inputs
  std::vector<std::vector<Tensor>> likes_;   // what the members were
  std::vector<size_t> others_;
  std::vector<Changed> changed_;  // members of groups that get another geometry
  struct Returned {
    size_t output, input;
  };
  std::vector<Returned> returned_;  // members of groups that are outputs themselves
};

// Gives a tensor the geometry that `steps` lead to. No element is written: what was saved of it stays good,
// so the change is counted before the graph runs (`count_change`), and not here.
void count_change(const Tensor& tensor);
void change_geometry(const Tensor& tensor, const Ref<ViewStep>& steps, bool is_silent);
// The same for the geometry of `after`.
void take_geometry(const Tensor& tensor, const Tensor& after, bool is_silent);

}  // namespace weft::aot
