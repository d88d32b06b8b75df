// weft-samples: runs folders of recorded operator calls and says what passes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <set>

#include "samples/runner.h"
#include "weft/base/error.h"

namespace weft::recorded {
namespace {

struct Options {
  std::vector<std::string> folders;
  std::string only, names;
  std::vector<std::string> families;
  bool verbose = false, no_vjp = false, list_missing = false, allow_missing = false, show_messages = false,
       quiet = false, pending = false;
};

// A kernel that crashes takes the program with it; the row that it ran must be known.
char running[256];
void report_crash(int signal) {
  constexpr char text[] = "weft-samples: crashed while running ";
  [[maybe_unused]] auto written = write(STDERR_FILENO, text, sizeof(text) - 1);
  written = write(STDERR_FILENO, running, strlen(running));
  written = write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
void note_running(const std::string& id) {
  size_t length = std::min(id.size(), sizeof(running) - 1);
  std::copy_n(id.begin(), length, running);
  running[length] = '\0';
}

std::set<std::string> read_names(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "cannot open '{}' for reading", path);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line[0] != '#') names.insert(line);
  }
  return names;
}

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {
    if (!options.only.empty()) only_ = std::regex(options.only);
    if (!options.names.empty()) names_ = read_names(options.names);
  }

  void run(const SampleFile& file) {
    if (!options_.families.empty() && std::find(options_.families.begin(), options_.families.end(),
                                                file.family()) == options_.families.end())
      return;
    Watch watch{[](const Row& row) { note_running(row.id); },
                [&](const Row& row, const RowResult& result) {
                  show_message(row, result);
                  if (result.is_missing) pending_.insert(row.overload);
                  else if (result.outcome == Outcome::kFailed) pending_.insert(row.id);
                }};
    auto results = run_file(
        file, [&](const std::string& overload) { return is_wanted(overload); }, {.vjp = !options_.no_vjp},
        watch);
    for (auto& [overload, result] : results) add(overload, result);
  }

  int finish() {
    if (options_.pending) {
      for (const std::string& line : pending_) std::cout << line << "\n";
      return 0;
    }
    if (options_.list_missing && !missing_.empty()) {
      std::cout << fmt::format("{} overloads are not defined:\n", missing_.size());
      for (const std::string& name : missing_) std::cout << "  " << name << "\n";
    }
    std::cout << fmt::format("{} passed, {} failed, {} skipped\n", passed_, failed_, skipped_);
    return failed_ ? 1 : 0;
  }

 private:
  bool is_wanted(const std::string& overload) const {
    if (only_ && !std::regex_search(overload, *only_)) return false;
    return !names_ || names_->contains(overload);
  }

  void show_message(const Row& row, const RowResult& result) const {
    if (!options_.show_messages || !row.is_error || result.message.empty()) return;
    std::cout << fmt::format("{}\n  PyTorch: {}\n  weft:    {}\n", row.id,
                             row.json->at("message").as_string(), result.message);
  }

  void add(const std::string& overload, OverloadResult& result) {
    if (result.is_missing) {
      missing_.insert(overload);
      if (!options_.allow_missing) {
        std::swap(result.failed, result.skipped);
        result.reasons.clear();
        result.differences.push_back("the operator is not defined");
      }
    }
    passed_ += result.passed;
    failed_ += result.failed;
    skipped_ += result.skipped;
    if (options_.pending || (options_.quiet && !result.failed)) return;
    print(overload.empty() ? "(no overload)" : overload, result);
  }

  void print(const std::string& name, const OverloadResult& result) const {
    std::vector<std::string> parts;
    if (result.passed) parts.push_back(fmt::format("{} passed", result.passed));
    if (result.failed) parts.push_back(fmt::format("{} failed", result.failed));
    for (const auto& [reason, count] : result.reasons)
      parts.push_back(fmt::format("{} skipped ({})", count, reason));
    std::cout << name << "  ";
    for (size_t i = 0; i < parts.size(); ++i) std::cout << (i ? ", " : "") << parts[i];
    std::cout << "\n";
    size_t shown =
        options_.verbose ? result.differences.size() : std::min<size_t>(1, result.differences.size());
    for (size_t i = 0; i < shown; ++i) std::cout << "    " << result.differences[i] << "\n";
  }

  const Options& options_;
  std::optional<std::regex> only_;
  std::optional<std::set<std::string>> names_;
  std::set<std::string> missing_, pending_;
  int passed_ = 0, failed_ = 0, skipped_ = 0;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("FOLDER", options.folders, "folders of sample files, or single .json files")->required();
  app.add_option("--only", options.only, "only overloads in which this regular expression is found");
  app.add_option("--family", options.families, "only files of this family; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--names", options.names,
                 "only overloads listed in this file, one a line; # begins a comment");
  app.add_flag("--verbose", options.verbose, "every difference, not only the first of each overload");
  app.add_flag("--quiet", options.quiet, "only overloads that fail");
  app.add_flag("--pending", options.pending,
               "print nothing but the overloads and rows that do not pass, as pending.txt lists them");
  app.add_flag("--no-vjp", options.no_vjp, "leave gradients out");
  app.add_flag("--show-messages", options.show_messages,
               "what calls that must fail say, beside PyTorch's words");
  app.add_flag("--list-missing", options.list_missing, "the overloads that are not defined, at the end");
  app.add_flag("--allow-missing", options.allow_missing,
               "count rows of overloads that are not defined as skipped, not as failed");
}

int run(const Options& options) {
  Report report(options);
  for (const std::string& folder : options.folders)
    for (const auto& path : sample_files(folder)) report.run(SampleFile::load(path));
  return report.finish();
}

}  // namespace
}  // namespace weft::recorded

int main(int count, char** arguments) {
  using namespace weft;
  recorded::Options options;
  CLI::App app(
      "Runs recorded operator calls and compares every result with what is stored.\n"
      "Exit codes: 0 all passed; 1 some failed, or are of overloads that are not defined; 2 usage; 3 a bad "
      "file.",
      "weft-samples");
  recorded::describe(app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, recorded::report_crash);
  try {
    return recorded::run(options);
  } catch (const std::regex_error& error) {
    std::cerr << "weft-samples: --only: " << error.what() << "\n";
    return 2;
  } catch (const FormatError& error) {
    std::cerr << "weft-samples: " << error.what() << "\n";
    return 3;
  } catch (const Error& error) {
    std::cerr << "weft-samples: " << error.what() << "\n";
    return 2;
  }
}
