// The exported programs of tests/compat/archives, whole and with a part changed.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "io/zip.h"

namespace weft::testing {

using ArchiveEntries = std::vector<std::pair<std::string, std::string>>;

inline std::string archive_path(const std::string& name) {
  return std::string(WEFT_SOURCE_DIR "/tests/compat/archives/") + name + ".pt2";
}
inline std::string archive_bytes(const std::string& name) {
  std::ifstream file(archive_path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline ArchiveEntries archive_entries(const std::string& bytes) {
  const zip::Archive archive(FileBytes::copy_of(bytes, "x"));
  ArchiveEntries entries;
  for (const zip::Entry& entry : archive.entries()) entries.emplace_back(entry.name, archive.read(entry));
  return entries;
}
inline std::string zipped_archive(const ArchiveEntries& entries) {
  std::string bytes;
  zip::Writer writer([&](std::string_view part) { bytes += part; });
  for (const auto& [name, content] : entries) writer.add(name, content);
  writer.finish();
  return bytes;
}

// The archive with one entry changed, whose checksum then fits; an empty text leaves it out.
inline std::string archive_with(const std::string& name, const std::string& entry,
                                const std::function<std::string(std::string)>& change) {
  ArchiveEntries entries = archive_entries(archive_bytes(name));
  for (auto& [path, content] : entries)
    if (path.ends_with(entry)) content = change(content);
  std::erase_if(entries, [&](const auto& e) { return e.first.ends_with(entry) && e.second.empty(); });
  return zipped_archive(entries);
}
// The archive with its program changed.
inline std::string archive_with_program(const std::string& name, const std::function<void(Json&)>& change) {
  return archive_with(name, "models/model.json", [&](const std::string& text) {
    Json json = Json::parse(text);
    change(json);
    return json.to_text();
  });
}
inline Json& program_node(Json& program, size_t i) {
  return program["graph_module"]["graph"]["nodes"].as_array()[i];
}

}  // namespace weft::testing
