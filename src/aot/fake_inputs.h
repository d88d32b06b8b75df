#pragma once

#include "aot/layer_scopes.h"
#include "weft/core/value.h"
#include "weft/ops/fake.h"

namespace weft::aot {

// The leaves without data; where there is an environment for them, sizes and integers are symbols of
// arguments `first`, `first` + 1, ..., but for those of the `num_fixed` leaves in front. Fake ones stay.
ValueList fakes_of(const ValueList& leaves, const FakeMode& fake, size_t first = 0, size_t num_fixed = 0);

// Opens a mode for them, with an environment for symbols or without one.
std::unique_ptr<FakeMode> fake_mode(bool dynamic);

}  // namespace weft::aot
