// How long it takes until a file is a program, and until a process that is started for it has a first result:
// weft's side of the suite "files". The peer's side is files_peer.py, with the same cases; files_make.py
// writes the programs.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#include "server.h"

using namespace weft;

namespace {

constexpr double kOwn = -1;  // what only weft has

std::string path_of(const std::string& name) { return "build/bench/files/" + name + ".pt2"; }

// Runs the command line to its end; the bytes that it had at the most.
double run_weft(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "build/release/bin/weft");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int failed = posix_spawn(&process, words[0], &silent, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&silent);
  int status = 0;
  rusage usage{};
  if (failed || wait4(process, &status, 0, &usage) < 0 || status != 0)
    throw std::runtime_error("weft " + arguments.back() + " failed");
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

bench::Cases cases() {
  bench::Cases all;
  for (const auto& [name, goal] : {std::pair("mlp", 0.02), std::pair("resnet50", 0.05)})
    all.push_back({std::string("process from start to first result, ") + name, goal,
                   [=] { return bench::repeat([=] { run_weft({"run", path_of(name)}); }); }});
  for (const char* name : {"resnet50", "bert-base", "gpt2"})
    all.push_back({std::string("load ") + name, 0.1,
                   [=] { return bench::repeat([path = path_of(name)] { load_pt2(path); }); }});
  for (const char* name : {"mlp", "resnet50"})
    all.push_back({std::string("peak memory of a run, ") + name, 0.7, {}, [=] {
                     return run_weft({"run", path_of(name)});
                   }});
  all.push_back({"weft --version", kOwn, [] { return bench::repeat([] { run_weft({"--version"}); }); }});
  return all;
}

}  // namespace

int main() {
  bench::Server(cases(), [](int threads) { set_num_threads(threads); }).serve();
}
