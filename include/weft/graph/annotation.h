#pragma once

#include <string>
#include <string_view>

#include "weft/dispatch/schema.h"

// Types as graphs declare them: the `Type` of schemas, spelled as Python does.

namespace weft {

// "torch.Tensor", "typing.Dict[str, torch.Tensor]", "typing.Optional[int]": PyTorch's spelling in graphs.
// Lists have no size there: int[2] is typing.List[int].
std::string annotation(const Type& type);

// The type of an annotation, in that spelling, in TorchScript's ("Optional[Tensor]") or with Python's own
// containers ("list[int]"). Another name is a class; what is no type to weft is a Type::Kind::kOpaque that
// keeps the text.
Type parse_annotation(std::string_view text);

}  // namespace weft
