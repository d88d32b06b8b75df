#include "weft/base/error.h"
#include "weft/ops/layers.h"
namespace weft::layers {
Value functionalize_upper(const Operator& op, Args) { unsupported("{}: functionalize", op.name()); }
Value recorder_upper(const Operator& op, Args) { unsupported("{}: recorder", op.name()); }
Value autocast(const Operator& op, Args) { unsupported("{}: autocast", op.name()); }
Value functionalize_lower(const Operator& op, Args) { unsupported("{}: functionalize", op.name()); }
Value recorder_lower(const Operator& op, Args) { unsupported("{}: recorder", op.name()); }
}
