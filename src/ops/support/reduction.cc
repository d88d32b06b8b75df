#include "ops/support/reduction.h"

#include "ops/structured.h"
#include "weft/base/error.h"

namespace weft {
namespace {

template <typename T>
struct Wider {
  using type = T;
};
template <>
struct Wider<float> {
  using type = double;
};
template <>
struct Wider<Complex<float>> {
  using type = Complex<double>;
};

template <typename T, typename A>
A step(Reduction reduction, A acc, T x) {
  switch (reduction) {
    case Reduction::kSum:
      if constexpr (std::same_as<A, bool>) return acc || x;
      else return acc + A(x);
    case Reduction::kProd:
      if constexpr (std::same_as<A, bool>) return acc && x;
      else return acc * A(x);
    case Reduction::kAny: return A(acc != A(0) || x != T(0));
    case Reduction::kAll: return A(acc != A(0) && x != T(0));
    default: break;
  }
  if constexpr (requires(A a) { a < a; }) {
    A v = A(x);
    bool better = reduction == Reduction::kMax ? v > acc : v < acc;
    return better || v != v ? v : acc;
  }
  return acc;
}

template <typename T>
void reduce_rows(Reduction reduction, const T* in, int64_t rows, int64_t columns, T* out) {
  using A = typename Wider<T>::type;
  for (int64_t r = 0; r < rows; ++r) {
    bool from_first = reduction == Reduction::kMax || reduction == Reduction::kMin;
    A acc = from_first ? A(in[r * columns]) : A(reduction == Reduction::kProd || reduction == Reduction::kAll ? 1 : 0);
    for (int64_t c = from_first ? 1 : 0; c < columns; ++c) acc = step<T, A>(reduction, acc, in[r * columns + c]);
    out[r] = T(acc);
  }
}

// The dims kept first, the reduced ones last, in memory of their own and of the compute type.
Tensor rows_of(const Tensor& self, uint64_t mask, DType compute) {
  SymInts sizes, strides;
  for (int pass = 0; pass < 2; ++pass)
    for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d)
      if ((mask >> d & 1) == static_cast<uint64_t>(pass)) {
        sizes.push_back(self.sizes()[d]);
        strides.push_back(self.strides()[d]);
      }
  Tensor ordered = alias_with(self, sizes, strides, self.storage_offset());
  Tensor rows = allocate_contiguous(sizes, compute);
  copy_values(rows, ordered);
  return rows;
}

}  // namespace

void reduce_values(Reduction reduction, DType compute, const Tensor& self, uint64_t mask, const Tensor& out) {
  DType wide = compute == kFloat16 || compute == kBFloat16 ? kFloat32 : compute;
  Tensor rows = rows_of(self, mask, wide);
  int64_t kept = out.plain_numel(), columns = kept == 0 ? 0 : self.plain_numel() / kept;
  if (self.plain_numel() == 0) {
    columns = 1;
    for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d)
      if (mask >> d & 1) columns *= self.plain_sizes()[d];
  }
  Tensor dense = allocate_contiguous(out.sizes(), wide);
  visit_dtype(wide, [&]<typename T>() {
    if constexpr (!std::same_as<T, Half> && !std::same_as<T, BFloat16>)
      reduce_rows(reduction, static_cast<const T*>(rows.raw_data()), kept, columns, static_cast<T*>(dense.raw_data()));
  });
  copy_values(out, dense);
}

}  // namespace weft
