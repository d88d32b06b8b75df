#include "ops/support/index_offsets.h"

namespace weft {

std::vector<int64_t> strided_offsets(IntSpan sizes, IntSpan strides) {
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> longer;
    longer.reserve(offsets.size() * static_cast<size_t>(sizes[d]));
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < sizes[d]; ++i) longer.push_back(offset + i * strides[d]);
    offsets = std::move(longer);
  }
  return offsets;
}

OffsetsAround::OffsetsAround(const Tensor& tensor, int64_t dim, IntSpan sizes) {
  IntSpan strides = tensor.plain_strides();
  auto d = static_cast<size_t>(dim), rank = strides.size();
  if (rank == 0) {  // a vector of one
    before = after = {0};
    return;
  }
  before = strided_offsets(IntSpan(sizes.data(), d), IntSpan(strides.data(), d));
  after = strided_offsets(IntSpan(sizes.data() + d + 1, rank - d - 1),
                          IntSpan(strides.data() + d + 1, rank - d - 1));
}

}  // namespace weft
