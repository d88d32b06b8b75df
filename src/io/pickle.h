#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/core/storage.h"
#include "weft/core/value.h"

// Python's pickles, as far as they hold data: tensors, numbers, strings and containers. A pickle is a program
// for a stack machine; here it has no way to call anything. What it says is made of a class that is not known
// becomes the tuple of the arguments.

namespace weft::pickle {

// How a pickle refers to memory that is kept beside it.
struct StorageName {
  std::string key;
  DType dtype = kFloat32;
  int64_t elements = 0;
};
// Gives the memory; asked once for each key.
using LoadStorage = FunctionRef<Ref<Storage>(const StorageName&)>;

struct Limits {
  size_t most_values = 10'000'000;  // in what comes out, shared parts counted each time
};

// Protocols 0 to 5, as far as data needs them. A FormatError that begins with `source` for everything else:
// other opcodes and types, cycles, containers nested deeper than Values may be, unfinished programs.
Value load(std::string_view bytes, std::string_view source, LoadStorage storage, const Limits& limits = {});

struct Pickled {
  std::string bytes;
  std::vector<Tensor> storages;  // a tensor over each memory, by its key "0", "1", ...
};
// Protocol 2. Structs become tuples of their fields. An error that names what has no form there.
Pickled dump(const Value& value);

}  // namespace weft::pickle
