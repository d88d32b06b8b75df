#include "help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace weft::cli {

std::vector<std::string> OptionHelp::choices() const {
  std::vector<std::string> all;
  if (value.find('|') == std::string::npos) return all;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find('|', at), value.size());
    all.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

namespace {

std::vector<std::string> names_of(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const OptionHelp& option : command.options)
    if (!option.is_positional()) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const ProgramHelp& program) {
  std::vector<std::string> names;
  for (const CommandHelp& command : program.commands) names.push_back(command.name);
  return names;
}

// --- bash

std::string bash_script(const ProgramHelp& program) {
  std::string text = fmt::format(
      "# Completion of weft for bash; `source` it, or keep it where bash-completion looks.\n"
      "_weft() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  local options='' choices=''\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      fmt::join(names_of(program), " "));
  for (const CommandHelp& command : program.commands) {
    text += fmt::format("    {})\n      options='{}'\n", command.name, fmt::join(names_of(command), " "));
    std::string cases;
    for (const OptionHelp& option : command.options) {
      const std::vector<std::string> choices = option.choices();
      if (option.is_positional() || option.value.empty() || option.is_file()) continue;
      // A number or a name: nothing to offer, and no files either.
      cases += fmt::format("        {}) choices='{}' ;;\n", fmt::join(option.names, "|"),
                           choices.empty() ? "-" : fmt::format("{}", fmt::join(choices, " ")));
    }
    for (const OptionHelp& option : command.options)
      if (option.is_positional() && !option.choices().empty())
        cases += fmt::format("        {}) choices='{}' ;;\n", command.name, fmt::join(option.choices(), " "));
    if (!cases.empty()) text += "      case $before in\n" + cases + "      esac\n";
    text += "      ;;\n";
  }
  return text +
         "  esac\n"
         "  if [ \"$choices\" = - ]; then\n"
         "    return\n"
         "  elif [ -n \"$choices\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
         "  elif [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _weft weft\n";
}

// --- zsh

// Inside '...[about]...' of _arguments.
std::string zsh_quoted(const std::string& text) {
  std::string quoted;
  for (char c : text) {
    if (c == '\'') quoted += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\') quoted += std::string("\\") + c;
    else quoted += c;
  }
  return quoted;
}

std::string zsh_value(const OptionHelp& option) {
  if (option.value.empty()) return "";
  if (const auto choices = option.choices(); !choices.empty())
    return fmt::format(":value:({})", fmt::join(choices, " "));
  return option.is_file() ? ":file:_files" : fmt::format(":{}: ", zsh_quoted(option.value));
}

std::string zsh_script(const ProgramHelp& program) {
  std::string text =
      "#compdef weft\n# Completion of weft for zsh; it goes into a folder of $fpath, as _weft.\n_weft() {\n"
      "  local -a commands\n  commands=(\n";
  for (const CommandHelp& command : program.commands)
    text += fmt::format("    '{}:{}'\n", command.name, zsh_quoted(command.about));
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  words=(\"${(@)words[2,-1]}\")\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandHelp& command : program.commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionHelp& option : command.options) {
      if (option.is_positional()) {
        const std::string value = zsh_value(option);
        text += fmt::format(" \\\n        ':{}{}'", option.names.front(),
                            value.empty() ? ":_files" : value.substr(value.find(':', 1)));
        continue;
      }
      for (const std::string& name : option.names)
        text += fmt::format(" \\\n        '{}[{}]{}'", name, zsh_quoted(option.about), zsh_value(option));
    }
    text += "\n      ;;\n";
  }
  return text + "  esac\n}\n_weft \"$@\"\n";
}

// --- fish

std::string fish_quoted(const std::string& text) {
  std::string quoted;
  for (char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted;
}

std::string fish_script(const ProgramHelp& program) {
  std::string text =
      "# Completion of weft for fish; it goes into ~/.config/fish/completions/weft.fish.\n"
      "complete -c weft -n __fish_use_subcommand -f -l version -d 'the version'\n";
  for (const CommandHelp& command : program.commands)
    text += fmt::format("complete -c weft -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                        fish_quoted(command.about));
  for (const CommandHelp& command : program.commands)
    for (const OptionHelp& option : command.options) {
      std::string line = fmt::format("complete -c weft -n '__fish_seen_subcommand_from {}'", command.name);
      const std::vector<std::string> choices = option.choices();
      if (option.is_positional()) {
        if (!choices.empty()) text += fmt::format("{} -f -a '{}'\n", line, fmt::join(choices, " "));
        continue;
      }
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.is_file()) line += " -r -F";
      else if (!choices.empty()) line += fmt::format(" -x -a '{}'", fmt::join(choices, " "));
      else if (!option.value.empty()) line += " -x";
      text += fmt::format("{} -d '{}'\n", line, fish_quoted(option.about));
    }
  return text;
}

// --- man

// What troff would take for its own: backslashes and hyphens anywhere, points and quotes at the start of a
// line.
std::string roff(const std::string& text) {
  std::string escaped;
  bool at_start = true;
  for (char c : text) {
    if (at_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') escaped += "\\e";
    else if (c == '-') escaped += "\\-";
    else escaped += c;
    at_start = c == '\n';
  }
  return escaped;
}

std::string roff_option(const OptionHelp& option) {
  std::string text = ".TP\n";
  for (const std::string& name : option.names)
    text += fmt::format("{}\\fB{}\\fR", name == option.names.front() ? "" : ", ", roff(name));
  if (!option.value.empty() && !option.is_positional())
    text += fmt::format(" \\fI{}\\fR", roff(option.value));
  return text + "\n" + roff(option.about) + "\n";
}

// Paragraphs of a footer; indented lines stay as they are.
std::string roff_footer(const std::string& footer) {
  return footer.empty() ? "" : ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
}

}  // namespace

std::string completion_script(const ProgramHelp& program, const std::string& shell) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return zsh_script(program);
  if (shell == "fish") return fish_script(program);
  return "";
}

std::string man_page(const ProgramHelp& program) {
  std::string text = fmt::format(
      ".TH WEFT 1 \"\" \"weft {}\"\n.SH NAME\nweft \\- run, differentiate, train and show exported tensor "
      "programs\n"
      ".SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIargument\\fR]...\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      program.version, roff(program.about));
  for (const CommandHelp& command : program.commands) {
    std::string arguments;
    for (const OptionHelp& option : command.options)
      if (option.is_positional()) arguments += " " + option.names.front();
    text += fmt::format(".SS weft {}{} [options]\n{}.\n", command.name, roff(arguments), roff(command.about));
    for (const OptionHelp& option : command.options) text += roff_option(option);
    text += roff_footer(command.footer);
  }
  return text + ".SH NOTES\n" + roff_footer(program.footer);
}

}  // namespace weft::cli
