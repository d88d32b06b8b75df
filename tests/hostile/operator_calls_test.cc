// Every operator of the table on hostile arguments: it gives a result or an error of the caller's kind, never
// a signal, a hang or an error of weft's own. WEFT_FUZZ_CALLS says how many calls, WEFT_FUZZ_SEED from which
// seed on: call i is made from seed + i alone, and a single call is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>

#include "hostile/random_arguments.h"
#include "support/sanitizers.h"
#include "weft/base/allocator.h"
#include "weft/ops/fake.h"

// There in programs that a sanitizer watches.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace weft::hostile {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// --- what died -------------------------------------------------------------------------------------------

constinit char current_call[160] = "";

void say_which_call() {
  const ssize_t written = write(STDERR_FILENO, current_call, std::strlen(current_call));
  static_cast<void>(written);
}
void say_and_die(int signal_number) {
  say_which_call();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

// Names the call that a signal or a sanitizer ends, and ends one that takes too long.
class CallWatch {
 public:
  CallWatch() {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_which_call);
    std::signal(SIGALRM, say_and_die);
    if constexpr (!testing::kSanitized)
      for (const int number : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS}) std::signal(number, say_and_die);
  }
  ~CallWatch() {
    alarm(0);
    for (const int number : {SIGALRM, SIGSEGV, SIGFPE, SIGABRT, SIGBUS})
      if (number == SIGALRM || !testing::kSanitized) std::signal(number, SIG_DFL);
  }
  void begin(uint64_t seed, const Operator& op) {
    const auto end = fmt::format_to_n(current_call, sizeof current_call - 1,
                                      "\ndied in call WEFT_FUZZ_SEED={} of {}\n", seed, op.name());
    *end.out = '\0';
    alarm(60);
  }
};

// --- what came of a call ---------------------------------------------------------------------------------

// Reads every element, so that memory which is not the result's own is noticed.
void read_through(const Value& result) {
  GradModeScope no_grad(false);
  for_each_tensor(result, [](const Tensor& tensor) {
    const bool has_memory = tensor.device().is_cpu() && !tensor.is_symbolic();
    if (has_memory && tensor.plain_numel() <= 10'000) clone(tensor);
  });
}

// What is wrong with how a call ended; empty where it gave a result or refused its arguments.
template <typename F>
std::string fault_of(const F& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kInternal ? error.what() : "";
  } catch (const std::exception& error) {
    return std::string("an exception that is not weft's: ") + error.what();
  }
  return "";
}

std::string fault_of_real(const OperatorCall& one) {
  return fault_of([&] { read_through(call(*one.op, one.args)); });
}
std::string fault_of_fake(const OperatorCall& one) {
  return fault_of([&] {
    FakeMode mode;
    call(*one.op, map_tensors(one.args, [&](const Tensor& tensor) { return mode.fake_of(tensor); }));
  });
}

class MemoryBound {
 public:
  MemoryBound() { allocator_for(kCpu).set_capacity(size_t{64} << 20); }
  ~MemoryBound() { allocator_for(kCpu).set_capacity(std::numeric_limits<size_t>::max()); }
};

// By what is wrong, so that a fault is told once however many calls meet it.
using Faults = std::map<std::string, std::string>;

Faults faults_of_calls(uint64_t first_seed, uint64_t count) {
  const std::vector<const Operator*> ops = all_operators();
  MemoryBound bound;
  CallWatch watch;
  Faults faults;
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    RandomArguments random(seed);
    // Written to by the calls: each gets its own.
    const OperatorCall real = random.call_of_any(ops), fake = RandomArguments(seed).call_of_any(ops);
    watch.begin(seed, *real.op);
    const std::string text = real.to_string();
    if (count == 1) fmt::print(stderr, "{}\n", text);
    for (const std::string& fault : {fault_of_fake(fake), fault_of_real(real)})
      if (!fault.empty())
        faults.try_emplace(fmt::format("{}: {}", real.op->name(), fault.substr(0, 60)),
                           fmt::format("WEFT_FUZZ_SEED={} {}\n{}", seed, text, fault));
  }
  return faults;
}

TEST(HostileArguments, AreRefusedOrGiveAResult) {
  const uint64_t seed = number_from("WEFT_FUZZ_SEED", 1), count = number_from("WEFT_FUZZ_CALLS", 4000);
  for (const auto& [key, text] : faults_of_calls(seed, count)) ADD_FAILURE() << text;
}

}  // namespace
}  // namespace weft::hostile
