#include "dispatch/rule_calls.h"

namespace weft::dispatch {
namespace {
thread_local bool are_of_rule = false;
}

RuleCalls::RuleCalls(bool are) : saved_(are_of_rule) { are_of_rule = are; }
RuleCalls::~RuleCalls() { are_of_rule = saved_; }
bool calls_are_of_rule() { return are_of_rule; }

}  // namespace weft::dispatch
