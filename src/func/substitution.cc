#include "func/substitution.h"

#include <unordered_set>

#include "weft/base/error.h"
#include "weft/ops/fake.h"

namespace weft {

Value SubstitutionLevel::handle(const Operator& op, Args args) {
  std::vector<Value> replaced = map_arguments(args, [&](const Tensor& tensor) {
    auto found = others_.find(tensor.impl());
    return Value(found == others_.end() ? tensor : found->second);
  });
  BelowLevel below(*this);
  return dispatch::redispatch(op, replaced);
}

namespace {

// Notes every tensor that comes from outside, on its way down.
class FinderLevel final : public Level {
 public:
  const char* name() const override { return "closure finder"; }
  bool sees_everything() const override { return true; }
  bool decomposes() const override { return false; }

  void know(const Value& value) {
    map_tensors(value, [&](const Tensor& tensor) {
      known_.insert(tensor.impl()->serial());
      kept_.push_back(tensor);
      return Value();
    });
  }
  Value handle(const Operator& op, Args args) override {
    map_arguments(args, [&](const Tensor& tensor) {
      bool is_number = tensor.flags() & tensor_flag::kWrappedNumber;
      if (!is_number && known_.insert(tensor.impl()->serial()).second) found_.push_back(tensor);
      return Value();
    });
    Value result;
    {
      BelowLevel below(*this);
      result = dispatch::redispatch(op, args);
    }
    know(result);
    return result;
  }
  const std::vector<Tensor>& found() const { return found_; }

 private:
  std::unordered_set<uint64_t> known_;
  std::vector<Tensor> found_, kept_;  // kept alive, so that their numbers are theirs
};

// No recorder writes down a search.
constexpr uint32_t kUnrecorded = ~(layer::kRecorderUpper | layer::kRecorderLower |
                                   layer::kFunctionalizeUpper | layer::kFunctionalizeLower | layer::kModes);

}  // namespace

std::vector<Tensor> closed_over(const ValueFunction& f, const ValueList& arguments) {
  auto level = make_ref<FinderLevel>();
  // On tensors of its own: the function may write to them.
  ValueList own;
  for (const Value& argument : arguments) {
    own.push_back(map_tensors(argument, [](const Tensor& t) { return Value(shape_only(t)); }));
    level->know(own.back());
  }
  std::optional<FakeMode> fake;
  if (!FakeMode::current()) fake.emplace(FakeOptions{.allow_real_inputs = true});
  LevelEntry entry(level);
  MaskScope quiet(kUnrecorded);
  f(own);
  return level->found();
}

}  // namespace weft
