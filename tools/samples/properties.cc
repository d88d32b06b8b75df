#include "samples/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "weft/base/error.h"

namespace weft::recorded {
namespace {

enum class Nature : uint8_t { kChoice, kPermutation, kHermitian, kEigen, kSingular, kHash };

// "sort" of "aten::sort.values_stable".
std::string base_name(const std::string& overload) {
  std::string name = overload.substr(overload.find("::") + 2);
  return name.substr(0, name.find('.'));
}

std::optional<Nature> nature_of(const Row& row) {
  static const std::map<std::string, Nature> natures = {{"sort", Nature::kPermutation},
                                                        {"argsort", Nature::kPermutation},
                                                        {"topk", Nature::kPermutation},
                                                        {"kthvalue", Nature::kChoice},
                                                        {"median", Nature::kChoice},
                                                        {"nanmedian", Nature::kChoice},
                                                        {"mode", Nature::kChoice},
                                                        {"linalg_eigh", Nature::kHermitian},
                                                        {"_linalg_eigh", Nature::kHermitian},
                                                        {"linalg_eig", Nature::kEigen},
                                                        {"linalg_eigvals", Nature::kEigen},
                                                        {"linalg_svd", Nature::kSingular},
                                                        {"_linalg_svd", Nature::kSingular},
                                                        {"svd", Nature::kSingular},
                                                        {"hash_tensor", Nature::kHash}};
  auto found = natures.find(base_name(row.overload));
  return found == natures.end() ? std::nullopt : std::optional(found->second);
}

const Json* argument(const Row& row, std::string_view name) {
  for (const Json& pair : row.json->at("args").as_array())
    if (pair.at(0).as_string() == name) return &pair.at(1);
  return nullptr;
}
bool is_true(const Json* flag) { return flag && flag->is_bool() && flag->as_bool(); }

// A tensor seen as `outer` x `length` x `inner` around one dim; all of it where there is none.
struct Lanes {
  size_t outer = 1, length = 1, inner = 1;
  size_t at(size_t o, size_t k, size_t i) const { return (o * length + k) * inner + i; }
};
Lanes lanes_of(IntSpan sizes, std::optional<int64_t> dim) {
  Lanes lanes;
  if (!dim) {
    for (int64_t size : sizes) lanes.length *= static_cast<size_t>(size);
    return lanes;
  }
  if (sizes.empty()) return lanes;
  auto axis = static_cast<size_t>(normalize_dim(*dim, static_cast<int64_t>(sizes.size())));
  for (size_t d = 0; d < sizes.size(); ++d)
    (d < axis ? lanes.outer : d == axis ? lanes.length : lanes.inner) *= static_cast<size_t>(sizes[d]);
  return lanes;
}

std::optional<int64_t> dim_of(const Row& row) {
  const Json* dim = argument(row, "dim");
  return dim && dim->is_int() ? std::optional(dim->as_int()) : std::nullopt;
}

bool any_order(const Row& row) {
  const Json* sorted = argument(row, "sorted");
  return sorted && !is_true(sorted);
}

double key_of(const Elements& values, size_t i) {
  if (values.is_exact()) return static_cast<double>(values.integers[i]);
  double real = values.numbers[i].re;
  return std::isnan(real) ? std::numeric_limits<double>::infinity() : real;
}

}  // namespace

Uniqueness uniqueness_of(const Row& row, const std::string& name) {
  std::optional<Nature> nature = nature_of(row);
  if (!nature || is_true(argument(row, "stable"))) return Uniqueness::kUnique;
  std::string base = base_name(row.overload);
  switch (*nature) {
    case Nature::kChoice:
    case Nature::kPermutation:
      if (name == "1" || name == "indices" || base == "argsort") return Uniqueness::kAmongEquals;
      return any_order(row) ? Uniqueness::kAmongEquals : Uniqueness::kUnique;
    case Nature::kHermitian:
      return name == "0" || name.starts_with("eigval") || name == "eigenvalues" ? Uniqueness::kUnique
                                                                                : Uniqueness::kUpToPhase;
    case Nature::kEigen:
      return name == "0" || name == "eigenvalues" || name == "out" ? Uniqueness::kAnyOrder
                                                                   : Uniqueness::kUpToPhase;
    case Nature::kSingular:
      return name == "1" || name == "S" ? Uniqueness::kUnique : Uniqueness::kUpToPhase;
    case Nature::kHash:
      return Uniqueness::kAnyValue;
  }
  return Uniqueness::kUnique;
}

Uniqueness gradient_uniqueness_of(const Row& row, const std::string& name) {
  // PyTorch keeps the gradient inside the part that was overwritten and drops it outside: the wrong way
  // round.
  if (base_name(row.overload) == "as_strided_scatter" && name == "self") return Uniqueness::kAnyValue;
  std::optional<Nature> nature = nature_of(row);
  if (!nature) return Uniqueness::kUnique;
  if (*nature == Nature::kChoice || *nature == Nature::kPermutation) return Uniqueness::kAmongEquals;
  return Uniqueness::kUpToPhase;
}

void leave_out_nan_inputs(const Row& row, bool is_gradient, const Arguments& arguments, Elements& got,
                          const Elements& stored) {
  static const std::set<std::string> activations = {"elu", "hardtanh", "relu6", "hardswish"};
  std::string name = base_name(row.overload);
  bool is_derivative = name.ends_with("_backward");
  if (is_derivative) name.resize(name.size() - std::string("_backward").size());
  if (!activations.contains(name) || !(is_gradient || is_derivative)) return;
  const Tensor* input = arguments.find(name == "elu" && is_derivative ? "self_or_result" : "self");
  if (!input) return;
  Elements inputs = elements_of(*input);
  if (inputs.is_exact() || inputs.count() != got.count() || got.count() != stored.count()) return;
  for (size_t i = 0; i < inputs.count(); ++i)
    if (std::isnan(inputs.numbers[i].re)) got.numbers[i] = stored.numbers[i];
}

namespace {

// One of several right answers, read lane by lane: values themselves, or indices of values in `source`.
struct Choice {
  const Elements& elements;
  bool is_index;
};

bool is_index(const Row& row, const std::string& name) {
  return name == "1" || name == "indices" || base_name(row.overload) == "argsort";
}

// What a lane chooses; nothing when an index is out of range.
std::optional<std::vector<double>> chosen_values(const Choice& choice, const Elements& source,
                                                 const Lanes& from, const Lanes& to, size_t o, size_t i) {
  std::vector<double> values;
  for (size_t k = 0; k < to.length; ++k) {
    size_t at = to.at(o, k, i);
    if (choice.is_index) {
      int64_t index = choice.elements.integers[at];
      if (index < 0 || static_cast<size_t>(index) >= from.length) return std::nullopt;
      values.push_back(key_of(source, from.at(o, static_cast<size_t>(index), i)));
    } else {
      values.push_back(key_of(choice.elements, at));
    }
  }
  return values;
}

bool repeats(const Choice& choice, const Lanes& to, size_t o, size_t i) {
  std::vector<int64_t> indices;
  for (size_t k = 0; choice.is_index && k < to.length; ++k)
    indices.push_back(choice.elements.integers[to.at(o, k, i)]);
  std::sort(indices.begin(), indices.end());
  return std::adjacent_find(indices.begin(), indices.end()) != indices.end();
}

}  // namespace

void compare_choices(Differences& differences, const std::string& what, const std::string& name,
                     const Row& row, const Arguments& arguments, const Elements& got,
                     const Elements& stored) {
  if (got.dtype != stored.dtype || got.count() != stored.count())
    return differences.compare_values(what, got, stored, 0);
  const Tensor* self = arguments.find("self");
  invariant(self != nullptr, "{} has no argument self", row.id);
  Elements source = elements_of(*self);
  Lanes from = lanes_of(IntSpan(source.sizes), dim_of(row)), to = from;
  size_t lanes = from.outer * from.inner;
  to.length = lanes ? got.count() / lanes : 0;
  Choice ours{got, is_index(row, name)}, theirs{stored, is_index(row, name)};
  for (size_t lane = 0; lane < lanes; ++lane) {
    size_t o = lane / from.inner, i = lane % from.inner;
    auto a = chosen_values(ours, source, from, to, o, i), b = chosen_values(theirs, source, from, to, o, i);
    if (!a || !b) return differences.add(fmt::format("{}: an index is out of range", what));
    if (any_order(row)) {
      std::sort(a->begin(), a->end());
      std::sort(b->begin(), b->end());
    }
    if (*a != *b) return differences.add(fmt::format("{}: other values are chosen", what));
    if (repeats(ours, to, o, i)) return differences.add(fmt::format("{}: an index is chosen twice", what));
  }
}

void compare_in_any_order(Differences& differences, const std::string& what, const Elements& got,
                          const Elements& stored, double noise) {
  if (got.dtype != stored.dtype || got.count() != stored.count() || stored.sizes.empty() || stored.is_exact())
    return differences.compare_values(what, got, stored, noise);
  // Each stored value takes the nearest one that is left of its row.
  Elements matched = got;
  auto length = static_cast<size_t>(stored.sizes.back());
  for (size_t row = 0; length && row < stored.count(); row += length)
    for (size_t i = row; i < row + length; ++i) {
      auto distance = [&](size_t k) {
        Complex<double> gap = matched.numbers[k] - stored.numbers[i];
        return std::hypot(gap.re, gap.im);
      };
      size_t nearest = i;
      for (size_t k = i + 1; k < row + length; ++k)
        if (distance(k) < distance(nearest)) nearest = k;
      std::swap(matched.numbers[i], matched.numbers[nearest]);
    }
  differences.compare_values(what, matched, stored, noise);
}

void compare_lane_sums(Differences& differences, const std::string& what, const Row& row, const Elements& got,
                       const Elements& stored, double noise) {
  Differences exact;
  exact.compare_values(what, got, stored, noise);
  if (exact.empty()) return;
  if (got.dtype != stored.dtype || got.count() != stored.count()) return differences.add(exact.take()[0]);
  Lanes lanes = lanes_of(IntSpan(stored.sizes), dim_of(row));
  auto sums = [&](const Elements& elements) {
    Elements sum{elements.dtype, {}, {}, std::vector<Complex<double>>(lanes.outer * lanes.inner)};
    sum.sizes.push_back(static_cast<int64_t>(lanes.outer * lanes.inner));
    for (size_t o = 0; o < lanes.outer; ++o)
      for (size_t k = 0; k < lanes.length; ++k)
        for (size_t i = 0; i < lanes.inner; ++i) {
          Complex<double>& total = sum.numbers[o * lanes.inner + i];
          total = total + elements.numbers[lanes.at(o, k, i)];
        }
    return sum;
  };
  differences.compare_values(what + " (sums of lanes)", sums(got), sums(stored), noise);
}

namespace {

using Number = std::complex<double>;
struct Matrix {
  size_t rows, columns;
  std::vector<Number> values;
  Number& operator()(size_t r, size_t c) { return values[r * columns + c]; }
  Number operator()(size_t r, size_t c) const { return values[r * columns + c]; }
};

std::vector<Matrix> matrices_of(const Tensor& tensor) {
  Elements elements = elements_of(tensor);
  auto rank = static_cast<size_t>(tensor.dim());
  auto rows = static_cast<size_t>(elements.sizes[rank - 2]),
       columns = static_cast<size_t>(elements.sizes[rank - 1]);
  std::vector<Matrix> matrices;
  for (size_t at = 0; rows > 0 && columns > 0 && at < elements.numbers.size(); at += rows * columns) {
    Matrix matrix{rows, columns, {}};
    for (size_t i = 0; i < rows * columns; ++i)
      matrix.values.emplace_back(elements.numbers[at + i].re, elements.numbers[at + i].im);
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns, std::vector<Number>(a.rows * b.columns)};
  for (size_t r = 0; r < a.rows; ++r)
    for (size_t k = 0; k < a.columns; ++k)
      for (size_t j = 0; j < b.columns; ++j) c(r, j) += a(r, k) * b(k, j);
  return c;
}
Matrix adjoint(const Matrix& a) {
  Matrix b{a.columns, a.rows, std::vector<Number>(a.values.size())};
  for (size_t r = 0; r < a.rows; ++r)
    for (size_t c = 0; c < a.columns; ++c) b(c, r) = std::conj(a(r, c));
  return b;
}
double distance(const Matrix& a, const Matrix& b) {
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) worst = std::max(worst, std::abs(a.values[i] - b.values[i]));
  return worst;
}
double size_of(const Matrix& a) {
  double largest = 1;
  for (Number value : a.values) largest = std::max(largest, std::abs(value));
  return largest;
}
// The first columns of `a`, each times a factor.
Matrix scaled(const Matrix& a, const Number* factors, size_t count) {
  Matrix b{a.rows, count, std::vector<Number>(a.rows * count)};
  for (size_t r = 0; r < a.rows; ++r)
    for (size_t c = 0; c < count; ++c) b(r, c) = a(r, c) * factors[c];
  return b;
}
Matrix first_rows(const Matrix& a, size_t count) {
  return {count, a.columns,
          std::vector<Number>(a.values.begin(),
                              a.values.begin() + static_cast<std::ptrdiff_t>(count * a.columns))};
}
bool has_orthonormal_columns(const Matrix& a, double allowed) {
  Matrix gram = product(adjoint(a), a);
  for (size_t i = 0; i < gram.rows; ++i) gram(i, i) -= 1.0;
  return std::all_of(gram.values.begin(), gram.values.end(),
                     [&](Number value) { return std::abs(value) <= allowed; });
}

// Only one triangle of the argument is read.
void mirror(Matrix& a, bool upper) {
  for (size_t r = 0; r < a.rows; ++r) {
    a(r, r) = a(r, r).real();
    for (size_t c = 0; c < r; ++c) (upper ? a(r, c) : a(c, r)) = std::conj(upper ? a(c, r) : a(r, c));
  }
}

std::vector<Number> numbers_of(const Tensor& tensor) {
  std::vector<Number> numbers;
  for (const Complex<double>& value : elements_of(tensor).numbers) numbers.emplace_back(value.re, value.im);
  return numbers;
}

}  // namespace

void check_decomposition(Differences& differences, const Row& row, const Arguments& arguments,
                         const std::vector<Tensor>& results) {
  std::optional<Nature> nature = nature_of(row);
  if (!nature || *nature == Nature::kHash || *nature == Nature::kChoice || *nature == Nature::kPermutation)
    return;
  const Json *wants_vectors = argument(row, "compute_uv"), *wants_v = argument(row, "compute_v");
  bool values_only =
      (wants_vectors && !is_true(wants_vectors)) || (wants_v && !is_true(wants_v)) || results.size() < 2;
  if (values_only || arguments.tensors.empty()) return;
  std::vector<Matrix> sources = matrices_of(arguments.tensors[0].second);
  double allowed = real_type(results[0].dtype()) == kFloat64 ? 1e-8 : 2e-4;
  const Json* triangle = argument(row, "UPLO");
  bool singular = *nature == Nature::kSingular;
  std::vector<Number> values = numbers_of(results[singular ? 1 : 0]);
  std::vector<Matrix> left = matrices_of(results[singular ? 0 : 1]), right;
  if (singular) right = matrices_of(results[2]);
  for (size_t m = 0; m < sources.size() && m < left.size(); ++m) {
    Matrix& a = sources[m];
    double limit = allowed * size_of(a) * static_cast<double>(std::max(a.rows, a.columns));
    size_t count = std::min(a.rows, a.columns);
    const Number* factors = values.data() + m * count;
    if (singular) {
      Matrix adjoint_right = base_name(row.overload) == "svd" ? adjoint(right[m]) : right[m];
      if (distance(product(scaled(left[m], factors, count), first_rows(adjoint_right, count)), a) > limit)
        return differences.add("U S Vh is not the matrix");
      if (!has_orthonormal_columns(left[m], allowed * 10) ||
          !has_orthonormal_columns(adjoint(adjoint_right), allowed * 10))
        return differences.add("the singular vectors are not orthonormal");
      continue;
    }
    if (*nature == Nature::kHermitian)
      mirror(a, triangle && triangle->is_string() &&
                    (triangle->as_string() == "U" || triangle->as_string() == "u"));
    if (distance(product(a, left[m]), scaled(left[m], factors, count)) > limit)
      return differences.add("A V is not V L");
    if (*nature == Nature::kHermitian && !has_orthonormal_columns(left[m], allowed * 10))
      return differences.add("the eigenvectors are not orthonormal");
  }
}

}  // namespace weft::recorded
