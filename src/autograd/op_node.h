#pragma once

#include "autograd/saved_tensor.h"
#include "weft/dispatch/operator.h"

namespace weft {

// The tape entry of an operator call: what its vjp rule declared to need, and nothing else.
class OpNode final : public GradNode, private Vjp {
 public:
  // `op` is the functional form, whose rule is used.
  OpNode(const Operator& op, Args args);

  std::string name() const override;
  std::vector<Tensor> apply(std::vector<Tensor> grads) override;
  void release_saved() override;

  // Which of the tensor inputs (lists flattened, in schema order) want gradients; fills `next`.
  void connect(Args args);
  // Instead of `connect`, for a rule that is run by itself: wants the gradients of these flattened inputs.
  void want(const std::vector<bool>& inputs);
  void save_inputs(Args args);
  // Whether any gradient that is wanted reads this argument.
  bool reads_input(size_t argument) const;
  uint32_t wanted_arguments() const;  // a bit each
  // In-place calls: the written argument's old values, kept under its argument number.
  void save_input(size_t argument, const Tensor& tensor);
  // `are_own`: they get their history from this node; not so for a rule that is run by itself.
  void save_outputs(const Value& result, bool are_own = true);
  // For a result of a call that carries no gradient (indices): keeps the numbering of results.
  void skip_result();

 private:
  struct TensorArgument {
    uint16_t argument;
    uint16_t first;  // its index among the flattened inputs
    uint16_t count;  // 1, or the length of the list
    bool is_list;
    bool given;
  };
  const TensorArgument& find(int argument) const;
  void check_declared(bool declared, const char* what, int index) const;
  void check_gradients(const Grads& given) const;

  // Vjp
  const Tensor& grad(int result) const override;
  Tensor input(int argument) const override;
  std::vector<Tensor> inputs(int argument) const override;
  Tensor output(int result) const override;
  const TensorShape& shape(int argument) const override;
  const TensorShape& shape(int argument, int element) const override;
  bool wants(int argument) const override;
  bool wants(int argument, int element) const override;
  const Value& arg(int argument) const override;
  bool has(int argument) const override;
  int count(int argument) const override;

  const Operator& op_;
  const bool called_by_rule_;
  SmallVector<Value, 4> values_;  // the arguments that are not tensors
  SmallVector<TensorArgument, 3> tensors_;
  SmallVector<SavedTensor, 2> saved_inputs_;  // by flattened index, where the rule declared them
  std::vector<SavedTensor> saved_outputs_;
  std::vector<TensorShape> shapes_;
  std::vector<Tensor> grads_;  // while the rule runs
  bool released_ = false;
};

}  // namespace weft
