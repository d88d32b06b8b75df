#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

// The tests of the house read weft's own sources. A rule is a function from a file to findings, so that it
// can be tried on planted text; a rule that cannot fail says nothing.

namespace weft::house {

struct SourceFile {
  std::string path;  // from the root of the project, with forward slashes
  std::string text;
};

struct Finding {
  std::string path;
  size_t line;
  std::string what;
  friend std::ostream& operator<<(std::ostream& out, const Finding& f) {
    return out << "\n  " << f.path << ":" << f.line << ": " << f.what;
  }
};
using Findings = std::vector<Finding>;

inline bool has_extension(std::string_view path, std::initializer_list<std::string_view> extensions) {
  return std::any_of(extensions.begin(), extensions.end(), [&](auto e) { return path.ends_with(e); });
}
inline bool is_cpp(std::string_view path) { return has_extension(path, {".h", ".cc", ".inc"}); }

inline SourceFile read_source(const std::filesystem::path& path) {
  static const std::filesystem::path root = WEFT_SOURCE_DIR;
  std::ifstream in(path, std::ios::binary);
  return {path.lexically_relative(root).generic_string(), {std::istreambuf_iterator<char>(in), {}}};
}

// Every file below these folders of the project, sorted by path. A folder that is not there (yet) has none.
inline std::vector<SourceFile> read_tree(const std::vector<std::string>& folders) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path(WEFT_SOURCE_DIR) / folder;
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(read_source(entry.path()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}
inline std::vector<SourceFile> read_cpp(const std::vector<std::string>& folders) {
  std::vector<SourceFile> files = read_tree(folders);
  std::erase_if(files, [](const SourceFile& file) { return !is_cpp(file.path); });
  return files;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The end of the string or character literal that begins at `at`: the offset after its closing quote.
inline size_t literal_end(const std::string& text, size_t at) {
  const bool is_raw = text[at] == '"' && at > 0 && text[at - 1] == 'R';
  if (is_raw) {
    size_t open = text.find('(', at);
    std::string close = ")" + text.substr(at + 1, open - at - 1) + "\"";
    size_t end = text.find(close, at);
    return end == std::string::npos ? text.size() : end + close.size();
  }
  size_t end = at + 1;
  while (end < text.size() && text[end] != text[at] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

// C++ text with its comments turned to blanks; literals and line breaks stay where they are.
inline std::string without_comments(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const bool is_separator =
        text[at] == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]));
    if ((text[at] == '"' || text[at] == '\'') && !is_separator) {
      at = literal_end(text, at);
      continue;
    }
    const std::string_view two = std::string_view(text).substr(at, 2);
    if (two != "//" && two != "/*") {
      ++at;
      continue;
    }
    size_t end = two == "//" ? text.find('\n', at) : text.find("*/", at + 2);
    end = end == std::string::npos ? text.size() : end + (two == "//" ? 0 : 2);
    for (; at < end; ++at)
      if (text[at] != '\n') text[at] = ' ';
  }
  return text;
}

// A finding for each match of `pattern`, which may span lines.
inline Findings matches(const SourceFile& file, const std::string& text, const std::regex& pattern,
                        const std::string& what) {
  Findings found;
  size_t line = 1, counted = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), none; match != none; ++match) {
    auto at = static_cast<size_t>(match->position());
    line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                           text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    found.push_back({file.path, line, what + ": " + match->str()});
  }
  return found;
}

template <typename Rule>
Findings findings_in(const std::vector<SourceFile>& files, const Rule& rule) {
  Findings all;
  for (const SourceFile& file : files) {
    Findings found = rule(file);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace weft::house
