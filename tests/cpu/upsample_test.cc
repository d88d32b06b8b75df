// Resized images against the formula written out, in both layouts and for sizes that many threads share.
#include "ops/cpu/upsample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weft::cpu {
namespace {

struct Image {
  int64_t batch, channels, height, width;
  bool last;
  std::vector<float> values;

  Image(int64_t n, int64_t c, int64_t h, int64_t w, bool last)
      : batch(n), channels(c), height(h), width(w), last(last), values(static_cast<size_t>(n * c * h * w)) {}
  float& at(int64_t n, int64_t c, int64_t y, int64_t x) {
    int64_t offset =
        last ? ((n * height + y) * width + x) * channels + c : ((n * channels + c) * height + y) * width + x;
    return values[static_cast<size_t>(offset)];
  }
  ImageArray array() {
    return {reinterpret_cast<char*>(values.data()), DType::kFloat32, batch, channels, height, width, last};
  }
};

template <typename F>
void for_each_pixel(const Image& image, F f) {
  for (int64_t n = 0; n < image.batch; ++n)
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t y = 0; y < image.height; ++y)
        for (int64_t x = 0; x < image.width; ++x) f(n, c, y, x);
}

Image filled(int64_t n, int64_t c, int64_t h, int64_t w, bool last) {
  Image image(n, c, h, w, last);
  for_each_pixel(image, [&](int64_t i, int64_t k, int64_t y, int64_t x) {
    image.at(i, k, y, x) = std::sin(static_cast<float>(i * 7 + k * 5 + y * 3 + x));
  });
  return image;
}

// The value between the four pixels around (y, x), which are held inside.
double mixed(Image& in, int64_t n, int64_t c, double y, double x) {
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  auto y0 = std::min(static_cast<int64_t>(y), in.height - 1),
       x0 = std::min(static_cast<int64_t>(x), in.width - 1);
  int64_t y1 = std::min(y0 + 1, in.height - 1), x1 = std::min(x0 + 1, in.width - 1);
  double v = y - static_cast<double>(y0), u = x - static_cast<double>(x0);
  return (1 - v) * ((1 - u) * in.at(n, c, y0, x0) + u * in.at(n, c, y0, x1)) +
         v * ((1 - u) * in.at(n, c, y1, x0) + u * in.at(n, c, y1, x1));
}

struct Sizes {
  int64_t height, width, new_height, new_width;
};
const Sizes kSizes[] = {{3, 4, 7, 9}, {9, 7, 4, 3}, {1, 5, 3, 1}, {20, 31, 173, 260}, {5, 5, 5, 5}};

TEST(Upsample, MixesTheFourPixelsAroundAPoint) {
  for (const Sizes& s : kSizes)
    for (bool last : {false, true})
      for (bool align : {false, true}) {
        Image in = filled(2, 5, s.height, s.width, last), out(2, 5, s.new_height, s.new_width, last);
        Resize resize{{s.height, s.new_height, {}}, {s.width, s.new_width, {}}, align};
        upsample_bilinear(resize, in.array(), out.array());
        auto source = [&](int64_t i, int64_t from, int64_t to) {
          double a = static_cast<double>(from), b = static_cast<double>(to), o = static_cast<double>(i);
          if (align) return to > 1 ? o * (a - 1) / (b - 1) : 0;
          return (o + 0.5) * a / b - 0.5;
        };
        for_each_pixel(out, [&](int64_t n, int64_t c, int64_t y, int64_t x) {
          EXPECT_NEAR(out.at(n, c, y, x),
                      mixed(in, n, c, source(y, s.height, s.new_height), source(x, s.width, s.new_width)),
                      1e-4)
              << s.new_height << "x" << s.new_width << " " << last << align << " at " << y << ", " << x;
        });
      }
}

TEST(Upsample, TakesTheNearestPixel) {
  for (const Sizes& s : kSizes)
    for (bool last : {false, true}) {
      Image in = filled(1, 3, s.height, s.width, last), out(1, 3, s.new_height, s.new_width, last);
      upsample_nearest({{s.height, s.new_height, {}}, {s.width, s.new_width, {}}}, in.array(), out.array());
      for_each_pixel(out, [&](int64_t n, int64_t c, int64_t y, int64_t x) {
        EXPECT_EQ(out.at(n, c, y, x), in.at(n, c, y * s.height / s.new_height, x * s.width / s.new_width));
      });
    }
}

// <up(x), g> = <x, down(g)> for any x and g.
TEST(Upsample, GradientsAreTheTranspose) {
  for (const Sizes& s : kSizes)
    for (bool bilinear : {false, true}) {
      Resize resize{{s.height, s.new_height, 1.3}, {s.width, s.new_width, {}}, false};
      Image x = filled(2, 3, s.height, s.width, false), y(2, 3, s.new_height, s.new_width, false);
      Image g = filled(2, 3, s.new_height, s.new_width, false), back(2, 3, s.height, s.width, false);
      (bilinear ? upsample_bilinear : upsample_nearest)(resize, x.array(), y.array());
      (bilinear ? upsample_bilinear_backward : upsample_nearest_backward)(resize, g.array(), back.array());
      double forward = 0, backward = 0, size = 0;
      for (size_t i = 0; i < y.values.size(); ++i) {
        forward += static_cast<double>(y.values[i]) * g.values[i];
        size += std::fabs(static_cast<double>(y.values[i]) * g.values[i]);
      }
      for (size_t i = 0; i < x.values.size(); ++i)
        backward += static_cast<double>(x.values[i]) * back.values[i];
      EXPECT_NEAR(forward, backward, 1e-5 * size) << s.new_height << "x" << s.new_width << " " << bilinear;
    }
}

// A scale of which nothing but nonsense follows still reads inside the image.
TEST(Upsample, HoldsPlacesInside) {
  for (double scale : {1e-300, 1e300, 1e-20}) {
    Image in = filled(1, 1, 3, 3, false), out(1, 1, 4, 4, false);
    Resize resize{{3, 4, scale}, {3, 4, scale}};
    upsample_nearest(resize, in.array(), out.array());
    upsample_bilinear(resize, in.array(), out.array());
  }
}

}  // namespace
}  // namespace weft::cpu
