// Meta functions say what kernels do: sizes, strides, types, aliasing; with plain sizes, with symbols that
// have hints, and with symbols that have none.
#include "ops/table_support.h"
#include "weft/ops/fake.h"

namespace weft::table {
namespace {

bool has_plain_result_sizes(const Operator& op) { return !op.has(Traits::kDataDependent); }

// The operator on real tensors, described.
std::string eager_description(const Case& one) {
  GradModeScope no_grad(false);
  std::vector<Value> args = one.args();
  return describe_result(call(*one.op, args), tensors_in(args), plain_number);
}

TEST(Meta, FakeTensorsAnswerAsRealOnes) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::string expected = eager_description(one);
    GradModeScope no_grad(false);
    std::vector<Value> real = one.args();
    FakeMode mode;
    std::vector<Value> fake = map_tensors(real, [&](const Tensor& t) { return mode.fake_of(t); });
    Value result = call(*one.op, fake);
    for (const Tensor& tensor : tensors_in(result))
      if (!is_fake(tensor)) texts.push_back("a result is not fake");
    std::string got = describe_result(result, tensors_in(fake), plain_number);
    if (got != expected) texts.push_back(fmt::format("\n  fake:  {}\n  eager: {}", got, expected));
  };
  expect_only(check_samples(has_plain_result_sizes, check), {});
}

// A tensor on the device `meta`, with the geometry of a real one.
Tensor on_meta_device(const Tensor& real) {
  auto impl =
      make_ref<TensorImpl>(Storage::without_memory(real.storage()->bytes(), kMeta), real.dtype(), kMeta);
  impl->set_geometry(real.sizes(), real.strides(), real.storage_offset());
  impl->set_flags(layer::kKernelDetour | (real.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative)));
  return Tensor(std::move(impl));
}

TEST(Meta, TensorsOnTheMetaDeviceAnswerAsRealOnes) {
  auto takes_tensors_only = [](const Operator& op) {
    return has_plain_result_sizes(op) && !op.has(Traits::kFactory) && !op.has(Traits::kCrossesDevices);
  };
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::string expected = eager_description(one);
    for (size_t at = 0; (at = expected.find("on cpu", at)) != std::string::npos;)
      expected.replace(at, 6, "on meta");
    GradModeScope no_grad(false);
    std::vector<Value> args = map_tensors(one.args(), on_meta_device);
    std::string got = describe_result(call(*one.op, args), tensors_in(args), plain_number);
    if (got != expected) texts.push_back(fmt::format("\n  meta:  {}\n  eager: {}", got, expected));
  };
  expect_only(check_samples(takes_tensors_only, check),
              {{"aten::to.device", "its sample moves the tensor to the CPU, which needs data"}});
}

TEST(Meta, SymbolicSizesGiveTheSameAtTheirHints) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::string expected = eager_description(one);
    GradModeScope no_grad(false);
    std::vector<Value> real = one.args();
    Ref<ShapeEnv> env = ShapeEnv::create({.duck_shape = false});
    FakeMode mode({.shape_env = env});
    int serial = 0;
    std::vector<Value> fake =
        map_tensors(real, [&](const Tensor& t) { return mode.fake_of(t, fmt::format("x{}", serial++)); });
    ForbidImplicitGuards forbid;
    Value result = call(*one.op, fake);
    std::string got = describe_result(result, tensors_in(fake), [](const SymInt& value) {
      std::optional<int64_t> hint = value.hint();
      return hint ? std::to_string(*hint) : value.to_string();
    });
    if (got != expected) texts.push_back(fmt::format("\n  symbolic: {}\n  eager:    {}", got, expected));
    for (const auto& [symbol, value] : env->replacements())
      if (symbol->is_symbol() && value->is_constant())
        texts.push_back(fmt::format("fixes {} to {}", symbol->to_string(), value->to_string()));
  };
  const char* given = "its sample gives the sizes as numbers";
  expect_only(check_samples(has_plain_result_sizes, check),
              {{"aten::expand", given},
               {"aten::resize", given},
               {"aten::sum_to_size", given},
               {"aten::split_with_sizes", given},
               {"aten::split.sizes", given},
               {"aten::layer_norm", given},
               {"aten::native_layer_norm", given},
               {"aten::native_group_norm/affine", given},
               {"aten::native_group_norm/image", given},
               {"aten::native_group_norm_backward/affine", given},
               {"aten::native_layer_norm_backward", given},
               {"aten::as_strided_scatter", given},
               {"weft::as_strided_backward", given},
               {"aten::select_backward", given},
               {"aten::slice_backward", given},
               {"aten::diagonal_backward", given},
               {"aten::unfold_backward", given},
               {"aten::rms_norm", given},
               {"aten::gru.input", "every step is a call of its own"},
               {"aten::lstm.input", "every step is a call of its own"},
               {"aten::rnn_tanh.input", "every step is a call of its own"},
               {"aten::rnn_relu.input", "every step is a call of its own"},
               {"aten::upsample_nearest2d_backward", given},
               {"aten::upsample_bilinear2d_backward", given},
               {"aten::index_select_backward", given},
               {"aten::value_selecting_reduction_backward/row", given},
               {"aten::unbind.int", "the number of results is the size"},
               {"aten::view_as_complex", "the last size must be 2"}});
}

TEST(Meta, DataDependentSizesAreUnbacked) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    GradModeScope no_grad(false);
    std::vector<Tensor> expected = tensors_in(call(*one.op, one.args()));
    std::vector<Value> real = one.args();
    Ref<ShapeEnv> env = ShapeEnv::create();
    FakeMode mode({.shape_env = env});
    std::vector<Value> fake = map_tensors(real, [&](const Tensor& t) { return mode.fake_of(t, "x"); });
    ForbidImplicitGuards forbid;
    std::vector<Tensor> got = tensors_in(call(*one.op, fake));
    if (got.size() != expected.size())
      return texts.push_back(fmt::format("{} results, expected {}", got.size(), expected.size()));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i].dim() != expected[i].dim() || got[i].dtype() != expected[i].dtype())
        texts.push_back(fmt::format("got {}, expected {}", weft::describe(got[i]).str(),
                                    weft::describe(expected[i]).str()));
  };
  const char* steps = "how many sequences each step has decides what is called";
  expect_only(check_samples([](const Operator& op) { return op.has(Traits::kDataDependent); }, check),
              {{"aten::gru.data", steps},
               {"aten::lstm.data", steps},
               {"aten::rnn_relu.data", steps},
               {"aten::rnn_tanh.data", steps}});
}

// Every size of 2 and more becomes a symbol without a hint; 0 and 1 stay, since they mean something else to
// broadcasting.
class Unbacked {
 public:
  Tensor fake_of(const Tensor& real) {
    SymInts sizes;
    for (int64_t size : real.plain_sizes()) sizes.push_back(size < 2 ? SymInt(size) : symbol(size));
    auto impl = make_ref<TensorImpl>(Storage::without_memory(real.storage()->bytes(), real.device()),
                                     real.dtype(), real.device());
    impl->set_geometry(sizes, strides_like(real, sizes), real.storage_offset());
    impl->set_flags(layer::kFake | (real.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative)));
    return Tensor(std::move(impl));
  }

  // The value when every symbol is the size it stands for.
  std::string number(const SymInt& value) const {
    if (!value.is_symbolic()) return value.to_string();
    std::optional<sym::Number> found = env_->evaluate(env_->simplify(env_->expr_of(value)), bindings_);
    return found ? std::to_string(std::get<int64_t>(*found)) : value.to_string();
  }
  const Ref<ShapeEnv>& env() const { return env_; }

 private:
  SymInt symbol(int64_t size) {
    // Equal sizes are one symbol: what a user states with check(a == b).
    auto found = known_.find(size);
    if (found != known_.end()) return found->second;
    SymInt made = env_->create_unbacked_int();
    check_size_like(made);
    bindings_[env_->expr_of(made)] = size;
    known_.emplace(size, made);
    return made;
  }

  // Dense tensors stay dense in the same order; others keep their plain strides.
  static SymInts strides_like(const Tensor& real, const SymInts& sizes) {
    if (!real.impl()->is_non_overlapping_and_dense()) return SymInts(real.strides());
    std::vector<size_t> order(sizes.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    IntSpan strides = real.plain_strides();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
    SymInts result(sizes.size(), SymInt(1));
    SymInt reach = 1;
    for (size_t k = order.size(); k-- > 0;) {
      result[order[k]] = reach;
      if (!(sizes[order[k]].is_symbolic() ? false : sizes[order[k]].plain() == 0))
        reach = reach * sizes[order[k]];
    }
    return result;
  }

  Ref<ShapeEnv> env_ = ShapeEnv::create();
  std::map<int64_t, SymInt> known_;
  sym::Bindings bindings_;
};

TEST(Meta, SizesWithoutHintsNeedNoGuards) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::string expected = eager_description(one);
    GradModeScope no_grad(false);
    std::vector<Value> real = one.args();
    Unbacked unbacked;
    FakeMode mode({.shape_env = unbacked.env()});
    std::vector<Value> fake = map_tensors(real, [&](const Tensor& t) { return unbacked.fake_of(t); });
    ForbidImplicitGuards forbid;
    std::string got = describe_result(call(*one.op, fake), tensors_in(fake),
                                      [&](const SymInt& value) { return unbacked.number(value); });
    if (got != expected) texts.push_back(fmt::format("\n  unbacked: {}\n  eager:    {}", got, expected));
  };
  const Exceptions must_guard = {{"aten::chunk", "the number of results depends on the size"},
                                 {"aten::split.Tensor", "the number of results depends on the size"},
                                 {"aten::unbind.int", "the number of results is the size"},
                                 {"aten::gru.input", "the number of steps is the size"},
                                 {"aten::lstm.input", "the number of steps is the size"},
                                 {"aten::rnn_tanh.input", "the number of steps is the size"},
                                 {"aten::rnn_relu.input", "the number of steps is the size"}};
  expect_only(check_samples(has_plain_result_sizes, check), must_guard);
}

}  // namespace
}  // namespace weft::table
