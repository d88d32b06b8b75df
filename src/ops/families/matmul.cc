// mm, bmm, addmm, matmul, linear and their like.
#include "ops/cpu/gemm.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

// Nothing is asked of a number that nothing is multiplied by.
Complex<double> number(const Scalar& s, const Tensor& out) {
  if (out.plain_numel() > 0) require_fits_computation(s, out.dtype());
  return s.to_complex();
}

// Without anything to multiply, what is left is `beta * self`, whose type must be one of the result's
// category.
void check_scaled_alone(const Scalar& beta, const SymInt& inner, const Tensor& out) {
  bool is_alone = inner.plain() == 0 && out.plain_numel() > 0 && !beta.equals_number(0);
  if (is_alone && beta.is_floating() && is_integral(out.dtype()))
    fail("result type Float can't be cast to the desired output type {}; beta is {}", dtype_name(out.dtype()),
         beta.to_double());
}

cpu::Matrix matrix_of(const Tensor& t, int64_t row_dim, int64_t column_dim) {
  return {static_cast<const char*>(t.raw_data()), t.plain_strides()[static_cast<size_t>(row_dim)],
          t.plain_strides()[static_cast<size_t>(column_dim)]};
}

void check_same_type(const char* op, const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype(), "{}: expected m1 and m2 to have the same dtype, but got: {} != {}", op,
          dtype_name(a.dtype()), dtype_name(b.dtype()));
  require(a.dtype() != kBool, "\"{}_impl_cpu\" not implemented for 'bool'", op);
}
void check_inner(const char* op, const SymInt& a, const SymInt& b, const Tensor& x, const Tensor& y) {
  if (!a.is_symbolic() && !b.is_symbolic())
    require(a.plain() == b.plain(), "{}: mat1 and mat2 shapes cannot be multiplied ({} and {})", op,
            describe_sizes(x.sizes()), describe_sizes(y.sizes()));
  else check(a == b, "the inner sizes of a matrix product must agree");
}

// A result that the kernel can write rows of; the others are written through a copy.
bool has_rows(const Tensor& out) {
  auto d = static_cast<size_t>(out.dim()) - 1;
  return out.plain_strides()[d] == 1 &&
         out.plain_strides()[d - 1] >= std::max<int64_t>(1, out.plain_sizes()[d]);
}
template <typename Write>
void write_rows(const Tensor& out, Write write) {
  if (has_rows(out)) return write(out);
  Tensor dense = allocate_contiguous(out.sizes(), out.dtype());
  write(dense);
  copy_values(out, dense);
}

// --- mm, addmm -------------------------------------------------------------------------------------------

TensorSpec mm_meta(const Tensor& self, const Tensor& mat2) {
  require(self.dim() == 2, "self must be a matrix, but it is {}", describe(self));
  require(mat2.dim() == 2, "mat2 must be a matrix, but it is {}", describe(mat2));
  check_inner("mm", self.sizes()[1], mat2.sizes()[0], self, mat2);
  check_same_type("mm", self, mat2);
  return contiguous_spec({self.sizes()[0], mat2.sizes()[1]}, self.dtype(), self.device());
}
// A tensor of at most two dims as the matrix that it is broadcast to.
cpu::Matrix broadcast_matrix(const Tensor& t) {
  auto stride = [&](int64_t from_last) {
    const int64_t d = t.dim() - from_last;
    return d < 0 || t.plain_sizes()[static_cast<size_t>(d)] == 1 ? 0
                                                                 : t.plain_strides()[static_cast<size_t>(d)];
  };
  return {static_cast<const char*>(t.raw_data()), stride(2), stride(1)};
}
// out = alpha * a * b + beta * added. With beta 0, `added` is not read.
void multiply(const Tensor& a, const Tensor& b, Complex<double> alpha, Complex<double> beta,
              const Tensor& added, const Tensor& out) {
  write_rows(out, [&](const Tensor& c) {
    cpu::Addend addend{beta, {}};
    if (beta.re != 0 || beta.im != 0) {
      const bool overlaps = !c.is_same(added) && c.storage().get() == added.storage().get();
      if (overlaps) copy_values(c, added);
      addend.matrix = overlaps ? matrix_of(c, 0, 1) : broadcast_matrix(added);
    }
    cpu::gemm(c.dtype(), a.plain_sizes()[0], b.plain_sizes()[1], a.plain_sizes()[1], alpha,
              matrix_of(a, 0, 1), matrix_of(b, 0, 1), addend, static_cast<char*>(c.raw_data()),
              c.plain_strides()[0]);
  });
}
void mm_into(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply(self, mat2, 1.0, 0.0, Tensor(), out);
}

TensorSpec addmm_meta(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&,
                      const Scalar&) {
  require(mat1.dim() == 2, "mat1 must be a matrix, got {}-D tensor", mat1.dim());
  require(mat2.dim() == 2, "mat2 must be a matrix, got {}-D tensor", mat2.dim());
  check_inner("addmm", mat1.sizes()[1], mat2.sizes()[0], mat1, mat2);
  check_same_type("addmm", mat1, mat2);
  require(self.dtype() == mat2.dtype(), "self and mat2 must have the same dtype, but got {} and {}",
          dtype_name(self.dtype()), dtype_name(mat2.dtype()));
  SymInts sizes{mat1.sizes()[0], mat2.sizes()[1]};
  if (!same_sizes(broadcast_sizes(self.sizes(), sizes), sizes))
    fail("addmm: the expanded size of the tensor must match: input {} cannot be broadcast to {}",
         describe_sizes(self.sizes()), describe_sizes(sizes));
  return contiguous_spec(sizes, mat1.dtype(), mat1.device());
}
void addmm_into(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  check_scaled_alone(beta, mat1.sizes()[1], out);
  multiply(mat1, mat2, number(alpha, out), number(beta, out), self, out);
}

// --- bmm -------------------------------------------------------------------------------------------------

TensorSpec bmm_meta(const Tensor& self, const Tensor& mat2) {
  require(self.dim() == 3, "batch1 must be a 3D tensor, but it is {}", describe(self));
  require(mat2.dim() == 3, "batch2 must be a 3D tensor, but it is {}", describe(mat2));
  if (!guard_or(self.sizes()[0] == mat2.sizes()[0], true) ||
      !guard_or(self.sizes()[2] == mat2.sizes()[1], true))
    fail("Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
         self.sizes()[0].to_string(), self.sizes()[2].to_string(), mat2.sizes()[0].to_string(),
         mat2.sizes()[1].to_string());
  check_same_type("bmm", self, mat2);
  return contiguous_spec({self.sizes()[0], self.sizes()[1], mat2.sizes()[2]}, self.dtype(), self.device());
}
void multiply_batches(const Tensor& a, const Tensor& b, Complex<double> alpha, Complex<double> beta,
                      const Tensor& out) {
  write_rows(out, [&](const Tensor& c) {
    if (!c.is_same(out) && (beta.re != 0 || beta.im != 0)) copy_values(c, out);
    cpu::batched_gemm(c.dtype(), a.plain_sizes()[0], a.plain_sizes()[1], b.plain_sizes()[2],
                      a.plain_sizes()[2], alpha, matrix_of(a, 1, 2), a.plain_strides()[0], matrix_of(b, 1, 2),
                      b.plain_strides()[0], beta, static_cast<char*>(c.raw_data()), c.plain_strides()[0],
                      c.plain_strides()[1]);
  });
}
void bmm_into(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply_batches(self, mat2, 1.0, 0.0, out);
}

// self broadcast to the matmul's sizes, scaled and added.
TensorSpec baddbmm_meta(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&,
                        const Scalar&) {
  TensorSpec product = bmm_meta(batch1, batch2);
  require(self.dtype() == batch1.dtype(),
          "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}", dtype_name(self.dtype()),
          dtype_name(batch1.dtype()), dtype_name(batch2.dtype()));
  if (self.dim() > 3 || !same_sizes(broadcast_sizes(self.sizes(), product.sizes), product.sizes))
    fail("baddbmm: the expanded size of the tensor must match: input {} cannot be broadcast to {}",
         describe_sizes(self.sizes()), describe_sizes(product.sizes));
  return product;
}
void baddbmm_into(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                  const Scalar& alpha, const Tensor& out) {
  check_scaled_alone(beta, batch1.sizes()[2], out);
  bool reads = !beta.equals_number(0);
  if (reads && !out.is_same(self)) copy_values(out, self);
  multiply_batches(batch1, batch2, number(alpha, out), reads ? number(beta, out) : Complex<double>(0), out);
}

// --- addmv -----------------------------------------------------------------------------------------------

std::string plain_text(const Tensor& t) {
  std::string text;
  for (const SymInt& size : t.sizes()) text += (text.empty() ? "" : "x") + size.to_string();
  return text;
}
TensorSpec addmv_meta(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar&,
                      const Scalar&) {
  require(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1,
          "vector + matrix @ vector expected, got {}, {}, {}", self.dim(), mat.dim(), vec.dim());
  bool fits = guard_or(mat.size(1) == vec.size(0), true);
  if (self.dim() == 1)
    fits = fits && (guard_or(self.size(0) == 1, false) || guard_or(self.size(0) == mat.size(0), true));
  if (!fits)
    fail("size mismatch, got input ({}), mat ({}), vec ({})", plain_text(self), plain_text(mat),
         plain_text(vec));
  require(self.dtype() == mat.dtype() && mat.dtype() == vec.dtype(),
          "addmv input tensors must have the same dtype, but got {}, {}, and {}", dtype_name(self.dtype()),
          dtype_name(mat.dtype()), dtype_name(vec.dtype()));
  check_same_type("addmv", mat, vec);
  return contiguous_spec({mat.size(0)}, mat.dtype(), mat.device());
}
// A vector as a matrix of one column.
Tensor as_column(const Tensor& vec) {
  return alias_with(vec, SymInts{vec.sizes()[0], 1}, SymInts{vec.strides()[0], 1}, vec.storage_offset());
}
void addmv_into(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  bool reads = !beta.equals_number(0);
  if (reads && !out.is_same(self)) copy_values(out, self);
  Tensor column = as_column(out);
  multiply(mat, as_column(vec), number(alpha, out), reads ? number(beta, out) : Complex<double>(0), column,
           column);
}

// --- dot, mv ---------------------------------------------------------------------------------------------

// A vector as a matrix of one row or one column.
Tensor row_of(const Tensor& vector) {
  return alias_with(vector, SymInts{1, vector.sizes()[0]}, SymInts{1, vector.strides()[0]},
                    vector.storage_offset());
}
Tensor column_of(const Tensor& vector) {
  return alias_with(vector, SymInts{vector.sizes()[0], 1}, SymInts{vector.strides()[0], 1},
                    vector.storage_offset());
}

TensorSpec mv_meta(const Tensor& self, const Tensor& vec) {
  require(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got {}, {}", self.dim(),
          vec.dim());
  check_inner("mv", self.sizes()[1], vec.sizes()[0], self, vec);
  check_same_type("mv", self, vec);
  return contiguous_spec({self.sizes()[0]}, self.dtype(), self.device());
}
void mv_into(const Tensor& self, const Tensor& vec, const Tensor& out) {
  multiply(self, column_of(vec), 1.0, 0.0, Tensor(), column_of(out));
}
Grads mv_vjp(const Vjp& v) {
  Tensor to_self, to_vec;
  if (v.wants(0)) to_self = reshape(v.grad(), {v.grad().size(0), 1}) * conj_of(v.input(1));
  if (v.wants(1)) to_vec = mv(t(conj_of(v.input(0))), v.grad());
  return {to_self, to_vec};
}

TensorSpec dot_meta(const Tensor& self, const Tensor& tensor) {
  require(self.dim() == 1 && tensor.dim() == 1, "1D tensors expected, but got {}D and {}D tensors",
          self.dim(), tensor.dim());
  require(self.dtype() == tensor.dtype(),
          "dot : expected both vectors to have same dtype, but found {} and {}", dtype_name(self.dtype()),
          dtype_name(tensor.dtype()));
  if (!guard_or(self.sizes()[0] == tensor.sizes()[0], true))
    fail(
        "inconsistent tensor size, expected tensor {} and src {} to have the same number of elements, but "
        "got {} and {} elements respectively",
        describe_sizes(self.sizes()), describe_sizes(tensor.sizes()), self.sizes()[0].to_string(),
        tensor.sizes()[0].to_string());
  return contiguous_spec({}, self.dtype(), self.device());
}
void dot_into(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  multiply(row_of(self), column_of(tensor), 1.0, 0.0, Tensor(),
           alias_with(out, SymInts{1, 1}, SymInts{1, 1}, out.storage_offset()));
}
Grads dot_vjp(const Vjp& v) {
  Tensor to_self = v.wants(0) ? v.grad() * conj_of(v.input(1)) : Tensor();
  return {to_self, v.wants(1) ? v.grad() * conj_of(v.input(0)) : Tensor()};
}

// --- matmul ----------------------------------------------------------------------------------------------

SymInts leading(const Tensor& t) { return SymInts(t.sizes().begin(), t.sizes().end() - 2); }

// Both broadcast to one batch, multiplied as a batch of matrices. What has no batch is broadcast as a whole.
// A vector that is a matrix of one row is expanded from what it is.
Tensor matmul_batched(const Tensor& given_self, const Tensor& self, const Tensor& other, SymIntSpan result) {
  SymInts batch = broadcast_sizes(leading(self), leading(other));
  SymInt total = 1;
  for (const SymInt& size : batch) total = total * size;
  auto flat = [&](const Tensor& given, const Tensor& matrix) {
    SymInts sizes = batch;
    sizes.push_back(matrix.size(-2));
    sizes.push_back(matrix.size(-1));
    return reshape(expand(given, sizes), {total, matrix.size(-2), matrix.size(-1)});
  };
  const Tensor left = flat(given_self, self), right = flat(other, other);
  Tensor product = bmm(left, right);
  return product.is_symbolic() ? view(product, result) : _unsafe_view(product, result);
}
// One large GEMM: the leading dims of `self` are rows.
Tensor matmul_rows(const Tensor& self, const Tensor& other) {
  SymInts sizes(self.sizes());
  SymInt rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows = rows * sizes[d];
  const Tensor matrix = reshape(self, {rows, self.size(-1)});
  const bool is_matrix = other.dim() == 2;
  const Tensor product = is_matrix ? mm(matrix, other) : mv(matrix, other);
  sizes.pop_back();
  if (is_matrix) sizes.push_back(other.size(1));
  return _unsafe_view(product, sizes);
}
// Whether a matrix or vector times a batch of matrices is one GEMM of their transposes: where it wants a
// gradient, which would be the sum over a batch of copies, and where the transposes are rows in memory.
bool folds(const Tensor& self, const Tensor& matrices) {
  // Of symbolic sizes PyTorch decides in Python, which looks at the matrices as they are.
  const Tensor transposed = matrices.is_symbolic() ? matrices : transpose(matrices, -2, -1);
  if (self.requires_grad()) return true;
  if (self.dim() == 2) return false;
  for (int64_t d = 0; d + 2 < transposed.dim(); ++d)
    if (!guard_or(transposed.stride(d) == transposed.stride(d + 1) * transposed.size(d + 1), false))
      return false;
  return true;
}
Tensor matmul_composite(const Tensor& self, const Tensor& other) {
  int64_t a = self.dim(), b = other.dim();
  require(a > 0 && b > 0, "both arguments to matmul need to be at least 1D, but they are {}D and {}D", a, b);
  if (a == 1 && b == 1) return dot(self, other);
  if (a == 2 && b == 1) return mv(self, other);
  if (a == 1 && b == 2) {
    Tensor product = mm(unsqueeze(self, 0), other);
    return product.is_symbolic() ? squeeze(product, 0) : squeeze_(product, 0);
  }
  if (a == 2 && b == 2) return mm(self, other);
  if (a >= 3 && b <= 2) return matmul_rows(self, other);
  if (a <= 2 && b >= 3 && folds(self, other)) {
    const Tensor matrices = transpose(other, -2, -1);
    if (a == 1) return matmul_rows(matrices, self);
    const Tensor product = matmul_rows(matrices, t(self));
    return contiguous(transpose(product, -2, -1));
  }
  Tensor left = a == 1 ? unsqueeze(self, 0) : self, right = b == 1 ? unsqueeze(other, 1) : other;
  SymInts result = broadcast_sizes(leading(left), leading(right));
  if (a > 1) result.push_back(left.size(-2));
  if (b > 1) result.push_back(right.size(-1));
  return matmul_batched(a == 1 ? self : left, left, right, result);
}

Tensor linear_composite(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  require(input.dim() > 0 && weight.dim() > 0,
          "both arguments to linear need to be at least 1D, but they are {}D and {}D", input.dim(),
          weight.dim());
  require(weight.dim() <= 2, "linear: expected weight of at most 2 dims, but it is {}", describe(weight));
  if (input.dim() == 2 && weight.dim() == 2 && bias.defined() && bias.dim() == 1)
    return addmm(bias, input, t(weight));
  // Rows that lie one after the other are those of one matrix.
  if (input.dim() > 2 && weight.dim() == 2 && bias.defined() && bias.dim() == 1 && input.is_contiguous()) {
    SymInts sizes(input.sizes());
    const SymInt width = sizes.back();
    sizes.pop_back();
    SymInt rows = 1;
    for (const SymInt& size : sizes) rows = rows * size;
    const Tensor matrix = view(input, {rows, width});
    Tensor product = addmm(bias, matrix, t(weight));
    sizes.push_back(product.size(1));
    return view(product, sizes);
  }
  Tensor product = matmul(input, t(weight));
  return bias.defined() ? product + bias : product;
}

// --- batching --------------------------------------------------------------------------------------------

Batched mm_batch(const Batch& call) {
  const Tensor left = batch_first(call.tensor(0), call.batch_dim(0)),
               right = batch_first(call.tensor(1), call.batch_dim(1));
  return {matmul(left, right), {0}};
}
Batched mv_batch(const Batch& call) {
  const Tensor vector = call.tensor(1);
  if (call.batch_dim(1) < 0) return {matmul(batch_first(call.tensor(0), call.batch_dim(0)), vector), {0}};
  // Without a batch of matrices the vectors are the columns of one.
  if (call.batch_dim(0) < 0)
    return {movedim(matmul(call.tensor(0), movedim(vector, call.batch_dim(1), 1)), 0, 1), {0}};
  const Tensor matrices = movedim(call.tensor(0), call.batch_dim(0), 0),
               columns = unsqueeze(batch_first(vector, call.batch_dim(1)), -1);
  return {squeeze(matmul(matrices, columns), -1), {0}};
}
Batched dot_batch(const Batch& call) {
  Tensor a = batch_first(call.tensor(0), call.batch_dim(0)),
         b = batch_first(call.tensor(1), call.batch_dim(1));
  if (call.batch_dim(0) < 0 || call.batch_dim(1) < 0) return {matmul(a, t(b)), {0}};
  const Tensor columns = unsqueeze(b, -1), rows = unsqueeze(a, -2);
  return {squeeze(squeeze(matmul(rows, columns), -1), -1), {0}};
}
// beta * self + alpha * matmul, with the batch of `self` in front of dims that broadcast to the matmul's.
Batched scaled_sum(const Batch& call, const Tensor& product) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  if (call.batch_dim(0) >= 0)
    while (self.dim() < product.dim()) self = unsqueeze(self, 1);
  Scalar beta = call.arg<Scalar>(3), alpha = call.arg<Scalar>(4);
  if (beta.equals_number(0)) return {product * alpha, {0}};
  return {self * beta + product * alpha, {0}};
}
Batched addmm_batch(const Batch& call) {
  Tensor product = bmm(with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size()),
                       with_batch_first(call.tensor(2), call.batch_dim(2), call.batch_size()));
  return scaled_sum(call, product);
}
Batched bmm_batch(const Batch& call) {
  const Tensor left = batch_first(call.tensor(0), call.batch_dim(0)),
               right = batch_first(call.tensor(1), call.batch_dim(1));
  return {matmul(left, right), {0}};
}

Batched baddbmm_batch(const Batch& call) {
  return scaled_sum(call, matmul(with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size()),
                                 with_batch_first(call.tensor(2), call.batch_dim(2), call.batch_size())));
}
Batched addmv_batch(const Batch& call) {
  Tensor mat = with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size()),
         vec = with_batch_first(call.tensor(2), call.batch_dim(2), call.batch_size());
  return scaled_sum(call, squeeze(bmm(mat, unsqueeze(vec, 2)), 2));
}

Tensor scaled(const Tensor& grad, const Scalar& factor) {
  return factor.equals_number(1) ? grad : grad * conj_of(factor);
}

// The gradients of the operands of a matmul have the operands' layout: that of a transposed matrix is the
// transpose of a contiguous one. So the gradient of a layer's weight, of which the matmul takes the
// transpose, is contiguous.
bool is_transposed(const TensorShape& matrix) {
  return known(matrix.strides[0] == 1) && known(matrix.strides[1] == matrix.sizes[0]);
}
Tensor gradient_of_left(const Tensor& grad, const TensorShape& left, const Tensor& right) {
  return is_transposed(left) ? t(mm(conj_of(right), t(grad))) : mm(grad, conj_of(t(right)));
}
Tensor gradient_of_right(const Tensor& grad, const Tensor& left, const TensorShape& right) {
  return is_transposed(right) ? t(mm(t(grad), conj_of(left))) : mm(conj_of(t(left)), grad);
}

}  // namespace

WEFT_OPERATOR(mm) = {
    .schema = "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    .out = "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear | Traits::kAutocastNarrow,
    .meta = function<&mm_meta>(),
    .kernel = structured_exact<&mm_meta, &mm_into>(),
    .vjp = {.saves = each_for_the_other(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor right = v.wants(1) ? gradient_of_right(v.grad(), v.input(0), v.shape(1)) : Tensor();
                  return Grads{v.wants(0) ? gradient_of_left(v.grad(), v.shape(0), v.input(1)) : Tensor(),
                               right};
                }},
    .batch = mm_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({2, 3}), f64({3, 4})}},
                         {"transposed", {transposed(f64({2, 3})), transposed(f64({3, 4}))}},
                         {"empty", {f64({2, 0}), f64({0, 3})}},
                         {"complex", {c128({2, 2}), c128({2, 2})}}};
        },
};

WEFT_OPERATOR(addmm) = {
    .schema =
        "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .inplace =
        "aten::addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor(a!)",
    .out =
        "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kAutocastNarrow,
    .meta = function<&addmm_meta>(),
    .kernel = structured_exact<&addmm_meta, &addmm_into>(),
    .vjp = {.saves = each_for_the_other(1, 2),
            .rule =
                [](const Vjp& v) {
                  Scalar beta = v.arg<Scalar>(3), alpha = v.arg<Scalar>(4);
                  Tensor left, right;
                  if (v.wants(1)) left = scaled(gradient_of_left(v.grad(), v.shape(1), v.input(2)), alpha);
                  if (v.wants(2)) right = scaled(gradient_of_right(v.grad(), v.input(1), v.shape(2)), alpha);
                  return Grads{v.wants(0) ? scaled(v.grad(), beta) : Tensor(), left, right};
                }},
    .batch = addmm_batch,
    .samples =
        [] {
          return Samples{{"bias", {f64({4}), f64({2, 3}), f64({3, 4})}},
                         {"scaled", {f64({2, 4}), f64({2, 3}), f64({3, 4}), 0.5, 2}}};
        },
};

WEFT_OPERATOR(bmm) = {
    .schema = "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
    .out = "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear | Traits::kAutocastNarrow,
    .meta = function<&bmm_meta>(),
    .kernel = structured_exact<&bmm_meta, &bmm_into>(),
    .vjp = {.saves = each_for_the_other(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor right = v.wants(1) ? bmm(conj_of(transpose(v.input(0), 1, 2)), v.grad()) : Tensor();
                  return Grads{v.wants(0) ? bmm(v.grad(), conj_of(transpose(v.input(1), 1, 2))) : Tensor(),
                               right};
                }},
    .batch = bmm_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({2, 2, 3}), f64({2, 3, 4})}},
                         {"transposed", {transposed(f64({2, 2, 3})), f64({2, 3, 4})}}};
        },
};

WEFT_OPERATOR(baddbmm) = {
    .schema =
        "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor",
    .inplace =
        "aten::baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor(a!)",
    .out =
        "aten::baddbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kAutocastNarrow,
    .meta = function<&baddbmm_meta>(),
    .kernel = structured_exact<&baddbmm_meta, &baddbmm_into>(),
    .vjp = {.saves = each_for_the_other(1, 2),
            .rule =
                [](const Vjp& v) {
                  Scalar beta = v.arg<Scalar>(3), alpha = v.arg<Scalar>(4);
                  Tensor left, right;
                  if (v.wants(1)) left = scaled(bmm(v.grad(), conj_of(transpose(v.input(2), 1, 2))), alpha);
                  if (v.wants(2)) right = scaled(bmm(conj_of(transpose(v.input(1), 1, 2)), v.grad()), alpha);
                  return Grads{v.wants(0) ? scaled(v.grad(), beta) : Tensor(), left, right};
                }},
    .batch = baddbmm_batch,
    .decompose = function<&baddbmm_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({2, 2, 4}), f64({2, 2, 3}), f64({2, 3, 4})}},
                         {"scaled", {f64({4}), f64({2, 2, 3}), transposed(f64({2, 3, 4})), 0.5, 2}},
                         {"alone", {f64({2, 2, 4}), f64({2, 2, 3}), f64({2, 3, 4}), 0}}};
        },
};

WEFT_OPERATOR(addmv) = {
    .schema = "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .inplace =
        "aten::addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor(a!)",
    .out =
        "aten::addmv.out(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kAutocastNarrow,
    .meta = function<&addmv_meta>(),
    .kernel = structured_exact<&addmv_meta, &addmv_into>(),
    .vjp = {.saves = each_for_the_other(1, 2),
            .rule =
                [](const Vjp& v) {
                  Scalar beta = v.arg<Scalar>(3), alpha = v.arg<Scalar>(4);
                  return Grads{v.wants(0) ? scaled(v.grad(), beta) : Tensor(),
                               v.wants(1)
                                   ? scaled(unsqueeze(v.grad(), 1) * conj_of(unsqueeze(v.input(2), 0)), alpha)
                                   : Tensor(),
                               v.wants(2) ? scaled(mv(conj_of(t(v.input(1))), v.grad()), alpha) : Tensor()};
                }},
    .batch = addmv_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({2}), f64({2, 3}), f64({3})}},
                         {"scaled", {f64({}), transposed(f64({4, 3})), f64({3}), 0.5, 2}}};
        },
};

WEFT_OPERATOR(mv) = {
    .schema = "aten::mv(Tensor self, Tensor vec) -> Tensor",
    .out = "aten::mv.out(Tensor self, Tensor vec, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear | Traits::kAutocastNarrow,
    .meta = function<&mv_meta>(),
    .kernel = structured_exact<&mv_meta, &mv_into>(),
    .vjp = {.saves = each_for_the_other(0, 1), .rule = mv_vjp},
    .batch = mv_batch,
    .decompose = function<&mv_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3}), f64({3})}}}; },
};

WEFT_OPERATOR(dot) = {
    .schema = "aten::dot(Tensor self, Tensor tensor) -> Tensor",
    .out = "aten::dot.out(Tensor self, Tensor tensor, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear | Traits::kAutocastNarrow,
    .meta = function<&dot_meta>(),
    .kernel = structured_exact<&dot_meta, &dot_into>(),
    .vjp = {.saves = each_for_the_other(0, 1), .rule = dot_vjp},
    .batch = dot_batch,
    .decompose = function<&dot_parts>(),
    .samples = [] { return Samples{{"plain", {f64({3}), f64({3})}}}; },
};

WEFT_OPERATOR(matmul) = {
    .schema = "aten::matmul(Tensor self, Tensor other) -> Tensor",
    .out = "aten::matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&matmul_composite>(),
    .samples =
        [] {
          return Samples{{"vectors", {f64({3}), f64({3})}},
                         {"matrices", {f64({2, 3}), f64({3, 4})}},
                         {"batched", {f64({2, 2, 3}), f64({3, 4})}},
                         {"broadcast", {f64({2, 1, 2, 3}), f64({3, 3, 2})}}};
        },
};

WEFT_OPERATOR(linear) = {
    .schema = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .out =
        "aten::linear.out(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&linear_composite>(),
    .samples =
        [] {
          return Samples{{"bias", {f64({2, 3}), f64({4, 3}), f64({4})}},
                         {"plain", {f64({2, 2, 3}), f64({4, 3})}}};
        },
};

}  // namespace weft::ops
