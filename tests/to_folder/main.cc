// Runs the classes that to_folder wrote, from a program outside of the tree: results must be the same, bit
// for bit.
#include <cstdio>
#include <cstring>

#include "Every.h"
#include "Foo.h"
#include "Mixed.h"
#include "Symbolic.h"

namespace {

int failures = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  ++failures;
}

bool same_bits(const weft::Tensor& a, const weft::Tensor& b) {
  if (a.dtype() != b.dtype() || a.dim() != b.dim()) return false;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!(a.size(d) == b.size(d))) return false;
  weft::SafeTensors x, y;
  x.add("t", a.detach());
  y.add("t", b.detach());
  return weft::safetensors_bytes(x) == weft::safetensors_bytes(y);
}

void compare(const std::string& folder, const std::string& name, const weft::Value& result) {
  weft::SafeTensors expected = weft::load_safetensors(folder + "/" + name + "_expected.safetensors");
  size_t next = 0;
  for (const weft::Value& leaf : weft::tree_flatten(result).leaves) {
    if (!leaf.is_tensor()) continue;
    const weft::Tensor* wanted = expected.find(std::to_string(next));
    check(wanted && same_bits(leaf.to_tensor(), *wanted), name + ", result " + std::to_string(next));
    ++next;
  }
  check(next == expected.size(), name + ": the number of results");
  std::printf("%s: %zu results\n", name.c_str(), next);
}

weft::Tensor input(const std::string& folder, const std::string& name, int i) {
  return weft::load_safetensors(folder + "/" + name + "_inputs.safetensors").at(std::to_string(i));
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  Foo foo(folder);
  compare(folder, "Foo", foo(input(folder, "Foo", 0)));
  check(foo.attr3.dtype() == weft::kInt32, "the type of attr3");
  check(foo.W.requires_grad() && !foo.attr2.requires_grad(), "which tensors are parameters");
  Mixed mixed(folder);
  compare(folder, "Mixed", weft::to_value(mixed(input(folder, "Mixed", 0), input(folder, "Mixed", 1))));
  Symbolic symbolic(folder);
  compare(folder, "Symbolic",
          weft::to_value(symbolic(input(folder, "Symbolic", 0), input(folder, "Symbolic", 1))));
  Every every(folder);
  compare(folder, "Every", weft::to_value(every()));
  return failures == 0 ? 0 : 1;
}
