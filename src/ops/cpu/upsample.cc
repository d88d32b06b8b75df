#include "ops/cpu/upsample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/cpu/scratch.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;  // elements that are worth a task

// The type in which values of T are mixed.
template <typename T>
using Mixed = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename F>
void visit_image_type(DType type, const char* op, F f) {
  switch (type) {
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kBFloat16:
      return f.template operator()<BFloat16>();
    default:
      unsupported("{} is not implemented for {}", op, dtype_name(type));
  }
}

// f(row) for every row of every plane of the image.
template <typename F>
void for_each_row(const ImageArray& image, int64_t elements_of_row, F f) {
  int64_t rows = image.batch * image.height * (image.is_channels_last ? 1 : image.channels);
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, elements_of_row)),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first; row < last; ++row) f(row);
               });
}
template <typename F>
void for_each_plane(const ImageArray& image, int64_t work, F f) {
  parallel_for(0, image.batch * image.channels, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)),
               [&](int64_t first, int64_t last) {
                 for (int64_t plane = first; plane < last; ++plane) f(plane);
               });
}

// The pixel in which `place` lies. One beyond the end, whatever the scale made of it, is the last.
template <typename C>
int64_t pixel_at(C place, int64_t size) {
  return place < static_cast<C>(size - 1) ? std::min(static_cast<int64_t>(place), size - 1) : size - 1;
}

// --- nearest ---------------------------------------------------------------------------------------------

// Where each place of the output comes from. In f32 whatever the image's type, as PyTorch does.
std::vector<int64_t> nearest_places(const ResizeAxis& axis) {
  std::vector<int64_t> places(static_cast<size_t>(axis.out));
  float scale = axis.scale && *axis.scale > 0 ? static_cast<float>(1 / *axis.scale)
                                              : static_cast<float>(axis.in) / static_cast<float>(axis.out);
  for (int64_t i = 0; i < axis.out; ++i) {
    int64_t place = pixel_at(std::floor(static_cast<float>(i) * scale), axis.in);
    if (axis.out == axis.in) place = i;
    else if (axis.out == 2 * axis.in) place = i / 2;
    places[static_cast<size_t>(i)] = place;
  }
  return places;
}

template <typename T>
void gather_row(const std::vector<int64_t>& places, const T* in, T* out) {
  for (size_t i = 0; i < places.size(); ++i) out[i] = in[places[i]];
}

template <typename T>
void nearest(const Resize& resize, const ImageArray& in, const ImageArray& out) {
  const std::vector<int64_t> rows = nearest_places(resize.rows), columns = nearest_places(resize.columns);
  const T* from = reinterpret_cast<const T*>(in.data);
  T* to = reinterpret_cast<T*>(out.data);
  const int64_t pixel = out.is_channels_last ? out.channels : 1;
  for_each_row(out, out.width * pixel, [&](int64_t row) {
    const int64_t plane = row / out.height, y = rows[static_cast<size_t>(row % out.height)];
    const T* source = from + (plane * in.height + y) * in.width * pixel;
    T* target = to + row * out.width * pixel;
    if (!out.is_channels_last) return gather_row(columns, source, target);
    for (int64_t x : columns) {
      std::memcpy(target, source + x * pixel, static_cast<size_t>(pixel) * sizeof(T));
      target += pixel;
    }
  });
}

// --- two neighbours and their shares ---------------------------------------------------------------------

template <typename C>
struct Tap {
  int64_t first, second;
  C near, far;  // the share of each
};

template <typename C>
C scale_of(const ResizeAxis& axis, bool align_corners) {
  if (align_corners) return axis.out > 1 ? static_cast<C>(axis.in - 1) / static_cast<C>(axis.out - 1) : C(0);
  if (axis.scale && *axis.scale > 0) return static_cast<C>(1 / *axis.scale);
  return static_cast<C>(axis.in) / static_cast<C>(axis.out);
}

template <typename C>
std::vector<Tap<C>> taps_of(const ResizeAxis& axis, bool align_corners) {
  std::vector<Tap<C>> taps;
  taps.reserve(static_cast<size_t>(axis.out));
  const C scale = scale_of<C>(axis, align_corners);
  for (int64_t i = 0; i < axis.out; ++i) {
    if (axis.in == axis.out) {
      taps.push_back({i, i, 1, 0});
      continue;
    }
    const C middle = C(0.5);
    const C place = align_corners ? scale * static_cast<C>(i)
                                  : std::max(scale * (static_cast<C>(i) + middle) - middle, C(0));
    const int64_t first = pixel_at(place, axis.in);
    const C far = std::clamp(place - static_cast<C>(first), C(0), C(1));
    taps.push_back({first, first + (first < axis.in - 1 ? 1 : 0), 1 - far, far});
  }
  return taps;
}

// --- bilinear --------------------------------------------------------------------------------------------

// One row of the output: two rows of the input are mixed, then neighbours within the mix.
template <typename T, typename C>
void mix_row(const Tap<C>& rows, const std::vector<Tap<C>>& columns, const T* plane, int64_t width, C* mixed,
             T* out) {
  const T *upper = plane + rows.first * width, *lower = plane + rows.second * width;
  for (int64_t x = 0; x < width; ++x)
    mixed[x] = rows.near * static_cast<C>(upper[x]) + rows.far * static_cast<C>(lower[x]);
  for (size_t i = 0; i < columns.size(); ++i) {
    const Tap<C>& tap = columns[i];
    out[i] = static_cast<T>(tap.near * mixed[tap.first] + tap.far * mixed[tap.second]);
  }
}

// The same where channels are adjacent.
template <typename T, typename C>
void mix_pixels(const Tap<C>& rows, const std::vector<Tap<C>>& columns, const T* image, int64_t width,
                int64_t channels, T* out) {
  const T *upper = image + rows.first * width * channels, *lower = image + rows.second * width * channels;
  for (const Tap<C>& tap : columns) {
    const T *a = upper + tap.first * channels, *b = upper + tap.second * channels,
            *c = lower + tap.first * channels, *d = lower + tap.second * channels;
    const C share_a = rows.near * tap.near, share_b = rows.near * tap.far, share_c = rows.far * tap.near,
            share_d = rows.far * tap.far;
    for (int64_t k = 0; k < channels; ++k)
      out[k] = static_cast<T>(share_a * static_cast<C>(a[k]) + share_b * static_cast<C>(b[k]) +
                              share_c * static_cast<C>(c[k]) + share_d * static_cast<C>(d[k]));
    out += channels;
  }
}

template <typename T>
void bilinear(const Resize& resize, const ImageArray& in, const ImageArray& out) {
  using C = Mixed<T>;
  const auto rows = taps_of<C>(resize.rows, resize.align_corners),
             columns = taps_of<C>(resize.columns, resize.align_corners);
  const T* from = reinterpret_cast<const T*>(in.data);
  T* to = reinterpret_cast<T*>(out.data);
  if (out.is_channels_last) {
    for_each_row(out, out.width * out.channels, [&](int64_t row) {
      mix_pixels<T, C>(rows[static_cast<size_t>(row % out.height)], columns,
                       from + row / out.height * in.pixels() * in.channels, in.width, in.channels,
                       to + row * out.width * out.channels);
    });
    return;
  }
  for_each_row(out, in.width + out.width, [&](int64_t row) {
    Scratch mixed(in.width * static_cast<int64_t>(sizeof(C)));
    mix_row<T, C>(rows[static_cast<size_t>(row % out.height)], columns, from + row / out.height * in.pixels(),
                  in.width, mixed.template as<C>(), to + row * out.width);
  });
}

// --- bilinear, bytes -------------------------------------------------------------------------------------

// Shares as integers of 2^-precision, each axis with as many bits as its largest share leaves in 16.
struct ByteTaps {
  std::vector<Tap<int>> taps;
  int precision;

  ByteTaps(const ResizeAxis& axis, bool align_corners) {
    const auto exact = taps_of<double>(axis, align_corners);
    // A place beyond the last pixel has that one for both neighbours.
    auto is_single = [](const Tap<double>& tap) { return tap.first == tap.second; };
    double largest = 0;
    for (const auto& tap : exact) largest = is_single(tap) ? 1 : std::max({largest, tap.near, tap.far});
    for (precision = 0; precision < 22; ++precision)
      if (static_cast<int>(0.5 + largest * (1 << (precision + 1))) >= 1 << 15) break;
    auto share = [&](double weight) { return static_cast<int>(0.5 + weight * (1 << precision)); };
    for (const auto& tap : exact)
      taps.push_back(
          {tap.first, tap.second, share(is_single(tap) ? 1 : tap.near), share(is_single(tap) ? 0 : tap.far)});
  }
  uint8_t mix(const Tap<int>& tap, uint8_t near, uint8_t far) const {
    int sum = (1 << (precision - 1)) + tap.near * near + tap.far * far;
    return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
  }
};

void bilinear_bytes(const Resize& resize, const ImageArray& in, const ImageArray& out) {
  const ByteTaps rows(resize.rows, resize.align_corners), columns(resize.columns, resize.align_corners);
  for_each_plane(out, in.pixels() + out.pixels(), [&](int64_t plane) {
    const auto* from = reinterpret_cast<const uint8_t*>(in.data) + plane * in.pixels();
    auto* to = reinterpret_cast<uint8_t*>(out.data) + plane * out.pixels();
    Scratch narrow(in.height * out.width);
    auto* widened = narrow.as<uint8_t>();  // every row of the input at the output's width
    for (int64_t y = 0; y < in.height; ++y)
      for (int64_t x = 0; x < out.width; ++x) {
        const Tap<int>& tap = columns.taps[static_cast<size_t>(x)];
        widened[y * out.width + x] =
            columns.mix(tap, from[y * in.width + tap.first], from[y * in.width + tap.second]);
      }
    for (int64_t y = 0; y < out.height; ++y) {
      const Tap<int>& tap = rows.taps[static_cast<size_t>(y)];
      const uint8_t *upper = widened + tap.first * out.width, *lower = widened + tap.second * out.width;
      for (int64_t x = 0; x < out.width; ++x) to[y * out.width + x] = rows.mix(tap, upper[x], lower[x]);
    }
  });
}

// --- gradients -------------------------------------------------------------------------------------------

// spread(plane of the gradient, sums of the plane of the input) for every plane; the sums begin as zeros.
template <typename T, typename F>
void for_each_gradient(const ImageArray& grad, const ImageArray& grad_in, F spread) {
  using C = Mixed<T>;
  const int64_t pixels = grad_in.pixels();
  for_each_plane(grad, grad.pixels() + pixels, [&](int64_t plane) {
    const T* from = reinterpret_cast<const T*>(grad.data) + plane * grad.pixels();
    T* to = reinterpret_cast<T*>(grad_in.data) + plane * pixels;
    if constexpr (std::is_same_v<T, C>) {
      std::fill(to, to + pixels, T(0));
      spread(from, to);
    } else {
      Scratch memory(pixels * static_cast<int64_t>(sizeof(C)));
      C* sums = memory.template as<C>();
      std::fill(sums, sums + pixels, C(0));
      spread(from, sums);
      for (int64_t i = 0; i < pixels; ++i) to[i] = static_cast<T>(sums[i]);
    }
  });
}

}  // namespace

void upsample_nearest(const Resize& resize, const ImageArray& in, const ImageArray& out) {
  if (in.type == DType::kUInt8) return nearest<uint8_t>(resize, in, out);
  visit_image_type(in.type, "upsample_nearest2d", [&]<typename T>() { nearest<T>(resize, in, out); });
}

void upsample_bilinear(const Resize& resize, const ImageArray& in, const ImageArray& out) {
  if (in.type == DType::kUInt8) return bilinear_bytes(resize, in, out);
  visit_image_type(in.type, "upsample_bilinear2d", [&]<typename T>() { bilinear<T>(resize, in, out); });
}

void upsample_nearest_backward(const Resize& resize, const ImageArray& grad, const ImageArray& grad_in) {
  const std::vector<int64_t> rows = nearest_places(resize.rows), columns = nearest_places(resize.columns);
  visit_image_type(grad.type, "upsample_nearest2d_backward", [&]<typename T>() {
    using C = Mixed<T>;
    for_each_gradient<T>(grad, grad_in, [&](const T* from, C* sums) {
      for (int64_t row : rows)
        for (int64_t column : columns) sums[row * grad_in.width + column] += static_cast<C>(*from++);
    });
  });
}

void upsample_bilinear_backward(const Resize& resize, const ImageArray& grad, const ImageArray& grad_in) {
  visit_image_type(grad.type, "upsample_bilinear2d_backward", [&]<typename T>() {
    using C = Mixed<T>;
    const auto rows = taps_of<C>(resize.rows, resize.align_corners),
               columns = taps_of<C>(resize.columns, resize.align_corners);
    for_each_gradient<T>(grad, grad_in, [&](const T* from, C* sums) {
      for (const Tap<C>& row : rows) {
        C *upper = sums + row.first * grad_in.width, *lower = sums + row.second * grad_in.width;
        for (const Tap<C>& column : columns) {
          const C g = static_cast<C>(*from++);
          upper[column.first] += row.near * column.near * g;
          upper[column.second] += row.near * column.far * g;
          lower[column.first] += row.far * column.near * g;
          lower[column.second] += row.far * column.far * g;
        }
      }
    });
  });
}

}  // namespace weft::cpu
