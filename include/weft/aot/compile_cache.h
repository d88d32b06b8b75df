#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "weft/graph/graph_module.h"

namespace weft::aot {

// What is known of a call before compilers run: its description, and its graph.
struct CompilePlan;

// Keeps what a compilation finds out, by the content of the program and of its examples, so that the same
// graph is not traced again; compilers run again. Programs are graph modules: what a C++ function does cannot
// be told from its value, and so a function that was not captured is not kept.
class CompileCache {
 public:
  struct Counters {
    size_t hits = 0, misses = 0, bypasses = 0;  // programs that cannot be kept
  };
  virtual ~CompileCache() = default;

  // Null where there is none. `key` says all that the plan depends on.
  std::shared_ptr<const CompilePlan> find(const std::string& key);
  void store(const std::string& key, std::shared_ptr<const CompilePlan> plan);
  void count_bypass();
  Counters counters() const;

 protected:
  // Called by one thread at a time.
  virtual std::shared_ptr<const CompilePlan> load(const std::string& key) = 0;
  virtual void save(const std::string& key, std::shared_ptr<const CompilePlan> plan) = 0;

 private:
  mutable std::mutex mutex_;
  Counters counters_;
};

// In the memory of the process.
std::shared_ptr<CompileCache> memory_cache();

}  // namespace weft::aot
