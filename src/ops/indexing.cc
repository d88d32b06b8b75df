#include "weft/ops/indexing.h"

#include "ops/unknown_rank.h"
#include "weft/base/error.h"
#include "weft/core/from_data.h"
#include "weft/ops/operators.h"

namespace weft {

constinit thread_local detail::RankQuestion detail::has_unknown_rank = nullptr;

namespace {

bool has_known_rank(const Tensor& tensor) {
  const bool may_be_unknown = detail::has_unknown_rank && (tensor.flags() & tensor_flag::kWatched);
  return !may_be_unknown || !detail::has_unknown_rank(*tensor.impl());
}

template <typename T>
const T* as(const Index& index) {
  return std::get_if<T>(&index.entry());
}

bool is_mask(const Tensor& tensor) { return tensor.dtype() == kBool || tensor.dtype() == kUInt8; }

// How many dims of the tensor an entry stands for.
int64_t dims_of(const Index& index) {
  if (const Tensor* positions = as<Tensor>(index)) return is_mask(*positions) ? positions->dim() : 1;
  return as<SymInt>(index) || as<Slice>(index) ? 1 : 0;
}

// The end of a slice that has none.
constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// The views that positions and slices make, and the tensors that are left for aten::index, by dim.
struct Selection {
  Tensor view;
  std::vector<Tensor> positions;
  bool has_positions = false;
};

class Selector {
 public:
  explicit Selector(const Tensor& tensor) : view_(tensor) {
    require(tensor.defined(), "an undefined tensor has no parts: expected a tensor before the brackets");
  }

  // What is only written to may be the tensor itself.
  Selection select(std::span<const Index> entries, bool reads = true) {
    is_single_ = reads && entries.size() == 1;
    int64_t given = 0;
    size_t ellipses = 0;
    for (const Index& entry : entries) {
      if (const Tensor* positions = as<Tensor>(entry))
        require(positions->defined(), "an undefined tensor is no index: expected positions or a mask");
      given += dims_of(entry);
      ellipses += as<Ellipsis>(entry) != nullptr;
    }
    require(ellipses <= 1, "an index can have one ellipsis, but this one has {}", ellipses);
    // Dims that are counted from the front need no rank; an ellipsis asks for it, unless nothing follows.
    const bool needs_rank = ellipses > 0 && !as<Ellipsis>(entries.back());
    const bool knows_rank = has_known_rank(view_);
    const int64_t rank = knows_rank ? view_.impl()->dim() : needs_rank ? view_.dim() : given;
    require(given <= rank, "too many indices for a tensor of dimension {}: there are {}", rank, given);
    for (const Index& entry : entries) {
      if (as<Ellipsis>(entry)) advance(rank - given);
      else add(entry);
    }
    // "No typed function returns early": a part that is the whole is a tensor of its own.
    if (reads && !is_changed_ && !has_positions_) view_ = alias(view_);
    return {view_, positions_, has_positions_};
  }

 private:
  void add(const Index& entry) {
    if (const SymInt* position = as<SymInt>(entry)) {
      set(weft::select(view_, dim_, *position));
    } else if (const Slice* slice = as<Slice>(entry)) {
      if (!is_whole(*slice)) {
        const SymInt start = slice->start.value_or(0), stop = slice->stop.value_or(kToTheEnd);
        set(weft::slice(view_, dim_, start, stop, slice->step));
      }
      advance(1);
    } else if (const Tensor* positions = as<Tensor>(entry)) {
      add_positions(*positions);
    } else {
      set(unsqueeze(view_, dim_));
      // A bool keeps the new dim, or makes it empty.
      if (const bool* keep = as<bool>(entry)) put_positions(zeros({*keep ? 1 : 0}, kInt64), 1);
      else advance(1);
    }
  }
  // Whether it may be left out: among others, where it is all of a dim by its form. Bounds that happen to be
  // the whole are kept, and so is a slice of a dim whose size is a symbol.
  bool is_whole(const Slice& slice) const {
    if (is_single_ || slice.start || slice.stop || slice.step.is_symbolic() || slice.step.plain() != 1)
      return false;
    return !has_known_rank(view_) || !view_.impl()->sizes()[static_cast<size_t>(dim_)].is_symbolic();
  }
  void add_positions(const Tensor& positions) {
    if (!is_mask(positions)) return put_positions(positions, 1);
    if (positions.dim() > 0) return put_positions(positions, positions.dim());
    set(unsqueeze(view_, dim_));
    put_positions(unsqueeze(positions, 0), 1);
  }
  void set(Tensor view) {
    view_ = std::move(view);
    is_changed_ = true;
  }
  // A mask of several dims is one entry of the list that aten::index takes.
  void put_positions(const Tensor& positions, int64_t dims) {
    positions_.resize(position_);
    positions_.push_back(positions);
    has_positions_ = true;
    dim_ += dims;
    ++position_;
  }
  void advance(int64_t dims) {
    dim_ += dims;
    position_ += static_cast<size_t>(dims);
  }

  Tensor view_;
  std::vector<Tensor> positions_;
  int64_t dim_ = 0;      // of the view
  size_t position_ = 0;  // in the list
  bool is_changed_ = false, has_positions_ = false, is_single_ = false;
};

// The value without its leading dims of size 1.
Tensor without_leading_ones(const Tensor& value) {
  if (!has_known_rank(value)) return value;
  SymIntSpan sizes = value.impl()->sizes();
  size_t first = 0;
  while (first < sizes.size() && known(sizes[first] == 1)) ++first;
  if (first == 0) return value;
  SymIntSpan own = value.sizes();
  SymInts kept;
  for (size_t d = first; d < own.size(); ++d) kept.push_back(own[d]);
  return view(value, kept);
}

Tensor literal_of(const Scalar& number, DType dtype) {
  Tensor tensor = allocate_contiguous({}, dtype);
  visit_dtype(dtype, [&]<typename T>() { *tensor.data<T>() = number.to<T>(); });
  return detail::literal_observer->literal(tensor);
}

}  // namespace

Tensor at(const Tensor& tensor, std::span<const Index> entries) {
  Selection selection = Selector(tensor).select(entries);
  return selection.has_positions ? index(selection.view, selection.positions) : selection.view;
}

void put_at(const Tensor& tensor, std::span<const Index> entries, const Tensor& value) {
  require(value.defined(), "put_at: expected a tensor to write, but it is undefined");
  Selection selection = Selector(tensor).select(entries, /*reads=*/false);
  if (selection.has_positions) index_put_(selection.view, selection.positions, without_leading_ones(value));
  else if (has_known_rank(value) && has_known_rank(selection.view) &&
           value.impl()->dim() > selection.view.impl()->dim())
    copy_(selection.view, without_leading_ones(value));
  else copy_(selection.view, value);
}

void put_at(const Tensor& tensor, std::span<const Index> entries, const Scalar& value) {
  // To a capture that keeps literals the number is one, as in Python.
  const bool is_watched = detail::literal_observer && !value.is_symbolic();
  Tensor literal = is_watched ? literal_of(value, tensor.dtype()) : Tensor();
  Selection selection = Selector(tensor).select(entries, /*reads=*/false);
  if (selection.has_positions)
    index_put_(selection.view, selection.positions, is_watched ? literal : full({}, value, tensor.dtype()));
  else if (!is_watched) fill_(selection.view, value);
  else if (selection.view.dim() == 0) copy_(selection.view, literal);
  else fill_(selection.view, literal);
}

Tensor Tensor::operator[](int64_t row) const { return at(*this, row); }
Tensor Tensor::operator[](const SymInt& row) const { return at(*this, row); }
Tensor Tensor::operator[](const Tensor& rows) const { return at(*this, rows); }

}  // namespace weft
