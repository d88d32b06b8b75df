#include "weft/io/compile_cache_folder.h"

#include <filesystem>

#include "io/plan_text.h"
#include "io/zip.h"
#include "weft/base/error.h"
#include "weft/base/warning.h"
#include "weft/io/graph_file.h"

namespace weft {
namespace {

// Entries of a file: what it is the plan for, the plan, and the graph with its constants.
constexpr const char *kKey = "key", *kPlan = "plan.json", *kGraph = "graph.safetensors";

class FolderCache final : public aot::CompileCache {
 public:
  explicit FolderCache(std::string folder) : folder_(std::move(folder)) {
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    require(!failure, "compile cache: the folder '{}' cannot be made: {}", folder_, failure.message());
  }

 private:
  std::string path_of(const std::string& key) const { return folder_ + "/" + aot::digest(key) + ".plan"; }

  std::shared_ptr<const aot::CompilePlan> load(const std::string& key) override {
    const std::string path = path_of(key);
    if (!std::filesystem::exists(path)) return nullptr;
    try {
      const zip::Archive archive = zip::Archive::open(path);
      // Two programs may have one name for their files; the key tells them apart.
      if (archive.read(archive.at(kKey)) != key) return nullptr;
      GraphModule graph = parse_graph_module(archive.read(archive.at(kGraph)), path);
      const Json text = Json::parse(archive.read(archive.at(kPlan)), path);
      return std::make_shared<const aot::CompilePlan>(plan_from_json(text, std::move(graph)));
    } catch (const Error& error) {
      warn(WarningKind::kUser, "compile cache: '{}' is damaged, and the program is traced again: {}", path,
           error.text());
      return nullptr;
    }
  }

  void save(const std::string& key, std::shared_ptr<const aot::CompilePlan> plan) override {
    const std::string text = plan_to_json(*plan).to_text(), graph = graph_module_bytes(plan->traced.module);
    FileWriter file(path_of(key));
    zip::Writer archive([&](std::string_view bytes) { file.write(bytes); });
    archive.add(kKey, key);
    archive.add(kPlan, text);
    archive.add(kGraph, graph);
    archive.finish();
    file.finish();
  }

  std::string folder_;
};

}  // namespace

std::shared_ptr<aot::CompileCache> compile_cache_in(const std::string& folder) {
  return std::make_shared<FolderCache>(folder);
}

}  // namespace weft
