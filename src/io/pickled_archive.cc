#include "io/pickled_archive.h"

#include <fmt/format.h>

#include "io/pickle.h"
#include "io/stored_tensor.h"
#include "weft/base/error.h"

namespace weft {

Value read_pickled_archive(const zip::Archive& archive) {
  const std::string& source = archive.source();
  if (archive.entries().empty()) throw FormatError(fmt::format("{}: the archive is empty", source));
  // All entries are in one folder, whose name is the file's.
  const std::string& first = archive.entries().front().name;
  const std::string root = first.substr(0, first.find('/') + 1);
  if (const zip::Entry* order = archive.find(root + "byteorder"))
    if (archive.read(*order, 16) != "little")
      throw FormatError(
          fmt::format("{}: entry '{}': only little-endian files can be read", source, order->name));
  const zip::Entry& program = archive.at(root + "data.pkl");
  auto load_storage = [&](const pickle::StorageName& name) {
    const zip::Entry& entry = archive.at(root + "data/" + name.key);
    Ref<Storage> storage = archive.storage(entry, element_alignment(name.dtype));
    if (name.dtype == kBool) check_bools(*storage, fmt::format("{}: entry '{}'", source, entry.name));
    return storage;
  };
  return pickle::load(archive.read(program), fmt::format("{}: {}", source, program.name), load_storage);
}

std::string pickled_archive(const Value& value) {
  const pickle::Pickled pickled = pickle::dump(value);
  std::string bytes;
  zip::Writer writer([&](std::string_view part) { bytes += part; });
  writer.add("archive/data.pkl", pickled.bytes);
  writer.add("archive/.format_version", "1");
  writer.add("archive/.storage_alignment", "64");
  writer.add("archive/byteorder", "little");
  for (size_t i = 0; i < pickled.storages.size(); ++i) {
    const Storage& storage = *pickled.storages[i].storage();
    writer.add(fmt::format("archive/data/{}", i),
               {static_cast<const char*>(storage.data()), storage.bytes()});
  }
  writer.add("archive/version", "3\n");
  writer.finish();
  return bytes;
}

}  // namespace weft
