// Elements combined with those that an index sends to them.
#include <cmath>

#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

enum class Reduce : uint8_t { kSum, kProd, kMean, kAmax, kAmin };
Reduce reduce_of(std::string_view name) {
  if (name == "sum") return Reduce::kSum;
  if (name == "prod") return Reduce::kProd;
  if (name == "mean") return Reduce::kMean;
  if (name == "amax") return Reduce::kAmax;
  require(name == "amin", "reduce argument must be either sum, prod, mean, amax or amin, got {}", name);
  return Reduce::kAmin;
}

TensorSpec scatter_reduce_meta(const Tensor& self, int64_t dim_, const Tensor& index, const Tensor& src,
                               std::string_view reduce, bool) {
  reduce_of(reduce);
  const int64_t dim = normalize_dim(dim_, self.dim());
  require(!self.is_complex(), "\"scatter_reduce\" not implemented for '{}'", dtype_name(self.dtype()));
  require(index.dtype() == kInt64 || guard_or(index.numel() == 0, false),
          "scatter_reduce(): Expected dtype int64 for index, but got {}", describe(index));
  require(src.dtype() == self.dtype(),
          "scatter(): Expected self.dtype to be equal to src.dtype, but got {} and {}", describe(self),
          describe(src));
  if (!guard_or(index.numel() == 0, false)) {
    auto rank = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
    require(rank(index) == rank(self) && rank(index) == rank(src),
            "Index tensor must have the same number of dimensions as self tensor and src tensor, but they "
            "are {}, {} and {}",
            describe(index), describe(self), describe(src));
    for (int64_t d = 0; d < index.dim(); ++d) {
      const bool in_self = d == dim || self.dim() == 0 || !guard_or(index.size(d) > self.size(d), false);
      const bool in_src = src.dim() == 0 || !guard_or(index.size(d) > src.size(d), false);
      require(in_self && in_src,
              "Expected index {} to be no larger than self {} apart from dimension {} and to be no larger "
              "size than src {}",
              describe_sizes(index.sizes()), describe_sizes(self.sizes()), dim, describe_sizes(src.sizes()));
    }
  }
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}

template <typename T>
using WideOf = std::conditional_t<std::same_as<T, Half> || std::same_as<T, BFloat16>, float, T>;

template <typename W>
W combined(Reduce how, W a, W b) {
  if constexpr (std::same_as<W, bool>) {
    return how == Reduce::kProd || how == Reduce::kAmin ? a && b : a || b;
  } else {
    auto is_nan = [](W x) {
      if constexpr (std::floating_point<W>) return std::isnan(x);
      else return false;
    };
    switch (how) {
      case Reduce::kProd:
        return static_cast<W>(a * b);
      case Reduce::kAmax:
        return is_nan(a) || (!is_nan(b) && a > b) ? a : b;
      case Reduce::kAmin:
        return is_nan(a) || (!is_nan(b) && a < b) ? a : b;
      default:
        return static_cast<W>(a + b);
    }
  }
}

void scatter_reduce_into(const Tensor& self, int64_t dim_, const Tensor& index_, const Tensor& src_,
                         std::string_view reduce, bool include_self, const Tensor& out) {
  const Reduce how = reduce_of(reduce);
  Tensor result = allocate_contiguous(self.sizes(), self.dtype());
  copy_values(result, self);
  if (index_.plain_numel() == 0) return copy_values(out, result);
  const int64_t rank = std::max<int64_t>(self.dim(), 1), dim = normalize_dim(dim_, rank);
  const Tensor index = dense_as(index_, kInt64), src = dense_as(src_, self.dtype());
  auto sizes_of = [&](const Tensor& t) {
    return t.dim() == 0 ? std::vector<int64_t>{1}
                        : std::vector<int64_t>(t.plain_sizes().begin(), t.plain_sizes().end());
  };
  const std::vector<int64_t> counts = sizes_of(index), own = sizes_of(self), from = sizes_of(src);
  std::vector<int64_t> at(static_cast<size_t>(rank));
  const auto along = static_cast<size_t>(dim);
  // Where element `at` goes, and where it comes from.
  auto for_each = [&](auto visit) {
    std::fill(at.begin(), at.end(), 0);
    for (int64_t i = 0; i < index.plain_numel(); ++i) {
      const int64_t row = index.data<int64_t>()[i];
      require(row >= 0 && row < own[along], "index {} is out of bounds for dimension {} with size {}", row,
              dim, own[along]);
      int64_t to = 0, source = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        to = to * own[d] + (d == along ? row : at[d]);
        source = source * from[d] + at[d];
      }
      visit(static_cast<size_t>(to), static_cast<size_t>(source));
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < counts[d]) break;
        at[d] = 0;
      }
    }
  };
  const auto total = static_cast<size_t>(result.plain_numel());
  visit_dtype(self.dtype(), [&]<typename T>() {
    if constexpr (!requires(T t) { t.re; }) {
      using W = WideOf<T>;
      auto* to = static_cast<T*>(result.raw_data());
      const auto* with = static_cast<const T*>(src.raw_data());
      std::vector<char> is_started(total, include_self ? 1 : 0);
      std::vector<int64_t> terms(total, include_self ? 1 : 0);
      for_each([&](size_t target, size_t source) {
        const W value = static_cast<W>(with[source]);
        to[target] = is_started[target] ? static_cast<T>(combined(how, static_cast<W>(to[target]), value))
                                        : static_cast<T>(value);
        is_started[target] = 1;
        ++terms[target];
      });
      if (how != Reduce::kMean) return;
      for (size_t i = 0; i < total; ++i) {
        if (terms[i] <= 1) continue;
        if constexpr (std::integral<T> && !std::same_as<T, bool>) {
          const auto sum = static_cast<int64_t>(to[i]);
          to[i] = static_cast<T>(sum / terms[i] - (sum % terms[i] != 0 && sum < 0 ? 1 : 0));
        } else {
          to[i] = static_cast<T>(static_cast<W>(to[i]) / static_cast<W>(terms[i]));
        }
      }
    }
  });
  copy_values(out, result);
}

Grads scatter_reduce_vjp(const Vjp& v) {
  const auto dim = v.arg<int64_t>(1);
  const auto name = v.arg<std::string_view>(4);
  const bool include_self = v.arg<bool>(5);
  Tensor self = v.input(0), index = v.input(2), src = v.input(3), grad = v.grad(), to_self, to_src;
  switch (reduce_of(name)) {
    case Reduce::kSum:
      to_self = grad;
      to_src = gather(grad, dim, index);
      break;
    case Reduce::kMean: {
      Tensor count =
          scatter_add(include_self ? ones_like(grad) : zeros_like(grad), dim, index, ones_like(src));
      count = masked_fill(count, count == 0, 1);
      to_self = grad / count;
      to_src = gather(grad, dim, index) / gather(count, dim, index);
      break;
    }
    case Reduce::kProd: {
      Tensor own = masked_fill(self, self == 0, 1);
      to_self = grad * scatter_reduce(own, dim, index, src, name, include_self) / own;
      Tensor is_zero = src == 0;
      Tensor zeros_in =
          gather(scatter_add(zeros_like(self), dim, index, is_zero.to(self.dtype())), dim, index);
      Tensor is_only = logical_and(is_zero, zeros_in == 1);
      Tensor others = scatter_reduce(self, dim, index, masked_fill(src, is_only, 1), name, include_self);
      Tensor quotient = gather(grad * v.output(), dim, index) / masked_fill(src, is_zero, 1);
      to_src = where(is_only, gather(grad * others, dim, index), quotient);
      break;
    }
    case Reduce::kAmax:
    case Reduce::kAmin: {
      Tensor self_is = (self == v.output()).to(self.dtype()),
             src_is = (src == gather(v.output(), dim, index)).to(src.dtype());
      Tensor share = grad / scatter_add(self_is, dim, index, src_is);
      to_self = self_is * share;
      to_src = src_is * gather(share, dim, index);
      break;
    }
  }
  if (!include_self) to_self = scatter(to_self, dim, index, 0);
  return {to_self, Tensor(), to_src};
}

Samples reduce_samples() {
  Samples samples;
  for (const char* name : {"sum", "prod", "mean", "amax", "amin"}) {
    samples.push_back({name, {f64({3, 4}), 1, i64({3, 2}, 0, 4), f64({3, 2}), name}});
    samples.push_back(
        {std::string(name) + "_without_self", {f64({5}), 0, i64({4}, 0, 5), f64({4}), name, false}});
  }
  return samples;
}

}  // namespace

WEFT_OPERATOR(scatter_reduce_two) = {
    .schema =
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True) -> Tensor",
    .inplace =
        "aten::scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True) -> Tensor(a!)",
    .out =
        "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&scatter_reduce_meta>(),
    .kernel = structured_exact<&scatter_reduce_meta, &scatter_reduce_into>(),
    .vjp = {.saves = inputs(0, 2, 3) | outputs(0), .rule = scatter_reduce_vjp},
    .batch = loop_batch,
    .samples = reduce_samples,
};

}  // namespace weft::ops
