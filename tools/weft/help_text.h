#pragma once

#include <string>
#include <vector>

// What the command line takes, as data: completions of shells and the man page are made of it, as --help is.

namespace weft::cli {

struct OptionHelp {
  std::vector<std::string> names;  // "-o", "--output"; of an argument without a name: "MODEL"
  std::string value;               // "FILE", "N"; "sgd|adamw" where it is one of these; empty for a flag
  std::string about;

  bool is_positional() const { return !names.front().starts_with('-'); }
  bool is_file() const { return value == "FILE"; }
  std::vector<std::string> choices() const;
};

struct CommandHelp {
  std::string name, about, footer;
  std::vector<OptionHelp> options;
};

struct ProgramHelp {
  std::string version, about, footer;
  std::vector<CommandHelp> commands;
};

// The script that a shell reads: "bash", "zsh" or "fish"; empty for another one.
std::string completion_script(const ProgramHelp& program, const std::string& shell);
// weft(1), for man.
std::string man_page(const ProgramHelp& program);

}  // namespace weft::cli
