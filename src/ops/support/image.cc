#include "ops/support/image.h"

#include "ops/structured.h"
#include "ops/support/batching.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"

namespace weft {

Tensor ImageArrays::to_write(const Tensor& t) const {
  if (t.is_contiguous(format_)) return t;
  return allocate({t.dtype(), t.device(), SymInts(t.sizes()), strides_of_format(t.sizes(), format_)});
}

Tensor ImageArrays::to_read(const Tensor& t) const {
  Tensor laid_out = to_write(t);
  if (!laid_out.is_same(t)) copy_values(laid_out, t);
  return laid_out;
}

cpu::ImageArray ImageArrays::array(const Tensor& t) const {
  IntSpan sizes = t.plain_sizes();
  size_t n = sizes.size();
  return {static_cast<char*>(t.raw_data()),
          t.dtype(),
          n == 4 ? sizes[0] : 1,
          sizes[n - 3],
          sizes[n - 2],
          sizes[n - 1],
          format_ == MemoryFormat::kChannelsLast};
}

void copy_back(const Tensor& written, const Tensor& target) {
  if (!written.is_same(target)) copy_values(target, written);
}

Batched image_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  SymInt size = call.batch_size();
  bool unbatched = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    Tensor t = with_batch_first(args[i].tensor_ref(), call.batch_dim(static_cast<int>(i)), size);
    unbatched = t.dim() == 4;
    args[i] = unbatched ? t : flatten(t, 0, 1);
  }
  Value result = weft::call(call.op(), args);
  auto split = [&](const Value& value) -> Value {
    Tensor t = value.to_tensor();
    if (unbatched) return t;
    SymInts sizes{size, floor_div(t.size(0), size)};
    for (size_t d = 1; d < t.sizes().size(); ++d) sizes.push_back(t.sizes()[d]);
    return reshape(t, sizes);
  };
  if (!result.is_sequence()) return {split(result), {0}};
  ValueList all;
  for (const Value& value : result.elements()) all.push_back(split(value));
  return {Value::tuple(all), std::vector<int64_t>(all.size(), 0)};
}

}  // namespace weft
