#pragma once

#include <cstdint>
#include <initializer_list>

namespace weft {

// What scaled_dot_product_attention may be computed by.
enum class AttentionBackend : uint8_t {
  kFlash,  // one operator
  kMath,   // its formula: matmuls and a softmax
};

// While it lives, scaled_dot_product_attention on this thread chooses among these only. A call that none of them
// takes is an error.
//
//   AttentionBackends math({AttentionBackend::kMath});
class AttentionBackends {
 public:
  AttentionBackends(std::initializer_list<AttentionBackend> allowed);
  ~AttentionBackends();
  AttentionBackends(const AttentionBackends&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace weft
