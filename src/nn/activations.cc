#include "weft/nn/activations.h"

#include "weft/base/error.h"

namespace weft::nn {

Hardtanh::Hardtanh(double min_val, double max_val, ActivationOptions options)
    : min_val(min_val), max_val(max_val), inplace(options.inplace) {
  require(max_val > min_val, "Hardtanh: expected max_val above min_val, but got [{}, {}]", min_val, max_val);
}

GELU::GELU(std::string approximate) : approximate(std::move(approximate)) {
  require(this->approximate == "none" || this->approximate == "tanh",
          "GELU: approximate must be \"none\" or \"tanh\", but is \"{}\"", this->approximate);
}

}  // namespace weft::nn
