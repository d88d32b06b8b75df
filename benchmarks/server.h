#pragma once

// A benchmark program as a server: it reads commands, one a line, and answers on standard output. The driver
// starts one for weft and one for the peer, and lets them take turns.
//
//   list          a line "name <tab> goal" for each case, then an empty line
//   threads N     sets the number of threads; answers "ok"
//   run N NAME    runs a case N times; answers the nanoseconds of one run, or the quantity that it measures
#include <chrono>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

class Stopwatch {
 public:
  double nanoseconds() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs something so many times; the nanoseconds that it took.
using Loop = std::function<double(int64_t)>;

// The loop is around the body itself, so that a short one is not timed with a call through std::function.
template <typename Body>
Loop repeat(Body body) {
  return [body = std::move(body)](int64_t times) mutable {
    const Stopwatch watch;
    for (; times > 0; --times) body();
    return watch.nanoseconds();
  };
}

// The same with an operand that is made anew for each run. Only the body is timed: neither the making nor the
// end of the operand and of what the body returns.
template <typename Prepare, typename Body>
Loop repeat_on(Prepare prepare, Body body) {
  return [prepare = std::move(prepare), body = std::move(body)](int64_t times) mutable {
    double taken = 0;
    for (; times > 0; --times) {
      auto operand = prepare();
      const Stopwatch watch;
      [[maybe_unused]] auto result = body(operand);
      taken += watch.nanoseconds();
    }
    return taken;
  };
}

struct Case {
  std::string name;
  double goal;                            // weft's time over the peer's is to be this or less
  std::function<Loop()> setup;            // makes the operands
  std::function<double()> quantity = {};  // instead of a time
};
using Cases = std::vector<Case>;

class Server {
 public:
  Server(Cases cases, std::function<void(int)> set_threads)
      : cases_(std::move(cases)), set_threads_(std::move(set_threads)) {}

  // Answers until standard input ends.
  void serve() {
    for (std::string line; std::getline(std::cin, line); std::cout << std::endl) answer(line);
  }

 private:
  void answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, name;
    int64_t number = 0;
    words >> command >> number >> std::ws;
    std::getline(words, name);
    if (command == "list") {
      for (const Case& c : cases_) std::cout << c.name << '\t' << c.goal << '\n';
    } else if (command == "threads") {
      set_threads_(static_cast<int>(number));
      std::cout << "ok";
    } else if (command == "run") {
      std::cout << time(find(name), number);
    } else {
      std::cout << "unknown command: " << line;
    }
  }

  const Case* find(const std::string& name) const {
    for (const Case& c : cases_)
      if (c.name == name) return &c;
    return nullptr;
  }

  // Operands live until two other cases were asked for, so that two can take turns.
  std::string time(const Case* wanted, int64_t times) {
    if (!wanted) return "no such case";
    if (wanted->quantity) return std::to_string(wanted->quantity());
    if (current_.of != wanted) {
      std::swap(current_, previous_);
      if (current_.of != wanted) {
        current_ = {};
        current_ = {wanted, wanted->setup()};
      }
    }
    // One run that is not timed wakes the workers and fills the caches again, unless a single one takes long
    // anyway.
    if (times > 1) current_.loop(1);
    return std::to_string(current_.loop(times) / static_cast<double>(times));
  }

  Cases cases_;
  std::function<void(int)> set_threads_;
  struct Ready {
    const Case* of = nullptr;
    Loop loop;
  };
  Ready current_, previous_;
};

}  // namespace bench
