#pragma once

#include <optional>

#include "weft/base/random.h"
#include "weft/dispatch/operator.h"
#include "weft/graph/node.h"

namespace weft {

// Finds where in the default generator's numbers the calls of a capture begin, counted from where the capture
// began. Of what really runs, the generator tells; where nothing is computed, the operators' table does.
class RandomNumbers {
 public:
  // The offset of a call that is about to be made; nothing for one that draws none of these numbers, and
  // nothing once the offset is not known.
  std::optional<SymInt> before(const Operator& op, Args args);
  // The offset of whatever is drawn next; nothing where that is not known.
  std::optional<SymInt> here();
  // Notes it in the node that the call became.
  void after(const Operator& op, Args args, const Value& result, const std::optional<SymInt>& offset,
             Node& node);
  // From here on nobody knows how many numbers were drawn: by one of two branches, or by each step of a loop.
  void lose() { is_known_ = false; }
  void note_unknown_draws() {
    drew_ = true;
    lose();
  }
  bool is_lost() const { return !is_known_; }
  bool drew() const { return drew_; }
  // How far the calls with an offset go.
  const SymInt& advance() const { return advance_; }

 private:
  const RandomStream start_ = next_random();
  SymInt advance_ = 0;
  bool is_known_ = true, drew_ = false;
};

}  // namespace weft
