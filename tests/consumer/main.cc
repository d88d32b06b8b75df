#include <weft/weft.h>

#include <cstdio>

int main() {
  using namespace weft;
  Tensor x = full({2, 3}, 1.5);
  x.set_requires_grad();
  Tensor y = x * x + 1;
  y.backward(ones({2, 3}));
  std::printf("%s\n", x.grad().to_string().c_str());
  return x.grad().plain_numel() == 6 && x.grad().data<float>()[5] == 3.0f ? 0 : 1;
}
