// Which instruction set kernels use, and how the environment chooses it.
#include "ops/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "raw_array.h"
#include "support/expect_error.h"

namespace weft::cpu::testing {
namespace {

class Isa : public ::testing::Test {
 protected:
  // What a process does that starts with this environment.
  static IsaLevel chosen_with(const char* name) {
    setenv("WEFT_ISA", name, 1);
    detail::active_isa = -1;
    return active_isa();
  }
  void TearDown() override {
    setenv("WEFT_ISA", environment_.c_str(), 1);
    set_active_isa(before_);
  }
  const IsaLevel before_ = active_isa();
  const std::string environment_ = std::getenv("WEFT_ISA") ? std::getenv("WEFT_ISA") : "";
};

TEST_F(Isa, IsTheOneThatTheEnvironmentNames) {
  for (IsaLevel isa : available_isas()) EXPECT_EQ(chosen_with(isa_name(isa)), isa);
  EXPECT_EQ(chosen_with(""), best_isa());
}

TEST_F(Isa, ThatIsNotThereIsRefusedWithThoseThatAre) {
  EXPECT_ERROR((void)chosen_with("mmx"),
               "WEFT_ISA=mmx: expected an instruction set that this processor and this build have: baseline");
  for (int level = static_cast<int>(best_isa()) + 1; level < kIsaCount; ++level)
    EXPECT_ERROR((void)chosen_with(isa_name(static_cast<IsaLevel>(level))),
                 "expected an instruction set that");
  // Nothing was chosen: the next call asks again.
  EXPECT_EQ(chosen_with("baseline"), IsaLevel::kBaseline);
}

}  // namespace
}  // namespace weft::cpu::testing
