#pragma once

namespace weft {

// Whether this thread exports or compiles a program at the moment, so that code can choose what makes the
// better graph. What PyTorch has under three names: torch.compiler.is_compiling, torch._utils.is_compiling
// and torch._dynamo.is_compiling.
//
//   if (!is_compiling()) std::cout << "loss " << loss.item().to_double() << "\n";
bool is_compiling() noexcept;

namespace detail {
// While it lives, is_compiling() is true on this thread.
class CompilingScope {
 public:
  CompilingScope() noexcept;
  ~CompilingScope();
  CompilingScope(const CompilingScope&) = delete;

 private:
  bool outer_;
};
}  // namespace detail

}  // namespace weft
