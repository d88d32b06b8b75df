#include "func/substitution.h"

#include <unordered_map>

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

// Notes every tensor that comes from outside, and goes on with a tensor without data in its place.
class FinderLevel final : public Level {
 public:
  const char* name() const override { return "closure finder"; }
  bool sees_everything() const override { return true; }
  bool decomposes() const override { return false; }
  bool sees_ended() const override { return true; }

  void know(const Value& value) {
    map_tensors(value, [&](const Tensor& tensor) {
      known_.emplace(tensor.impl()->serial(), tensor);
      return Value();
    });
  }
  Value handle(const Operator& op, Args args) override {
    std::vector<Value> plain = map_arguments(args, [&](const Tensor& tensor) {
      if (tensor.flags() & tensor_flag::kWrappedNumber) return Value(tensor);
      auto [place, is_new] = known_.try_emplace(tensor.impl()->serial());
      if (is_new) {
        found_.push_back(tensor);
        place->second = shape_only(tensor);
        know(place->second);
      }
      return Value(known_.at(tensor.impl()->serial()));
    });
    Value result;
    {
      BelowLevel below(*this);
      result = dispatch::redispatch(op, plain);
    }
    know(result);
    return result;
  }
  const std::vector<Tensor>& found() const { return found_; }

 private:
  // By serial number, what goes on for each tensor; alive, so that the numbers are theirs.
  std::unordered_map<uint64_t, Tensor> known_;
  std::vector<Tensor> found_;
};

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
  // No other transform is concerned: all tensors below this level are its own.
  LayerStateScope saved;
  layer_state().level_depth = 0;
  LevelEntry entry(level);
  MaskScope quiet(kUnrecorded);
  f(own);
  return level->found();
}

}  // namespace weft
