// The page of `weft show --format html` in a browser: it opens, its nodes are found, chosen and folded.
#include "html_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "weft/weft.h"

namespace weft {
namespace {

// Three levels of modules: ten of ten layers of twenty operators.
struct Layer : nn::Module {
  Tensor scale = parameter("scale", ones({4}).set_requires_grad());
  Tensor forward(Tensor x) {
    for (int i = 0; i < 10; ++i) x = x.sin() * scale;
    return x;
  }
  WEFT_ARGS(x)
};
template <typename Part>
struct Ten : nn::Module {
  nn::ModuleList<Part> parts = child("parts", nn::ModuleList<Part>());
  Ten() {
    for (int i = 0; i < 10; ++i) parts.push_back(Part());
  }
  Tensor forward(Tensor x) {
    for (Part& part : parts) x = part(x);
    return x;
  }
  WEFT_ARGS(x)
};

// What a person does, as a script: reads the time, chooses the 500th operator, follows a link, searches,
// folds.
constexpr const char* kProbe = R"html(<script>
const seen = {loaded: performance.now(), title: document.title, nodes: nodes.length, shown: document.getElementById("count").textContent};
const calls = nodes.filter(n => n.kind === "call_function");
rows.get(calls[500].key).click();
seen.chosen = calls[500].name;
seen.panel = document.getElementById("panel").textContent;
seen.near = document.querySelectorAll(".node.near").length;
document.querySelector("#panel a").click();
seen.followed = document.querySelector("#panel h2").textContent;
seen.input = calls[500].inputs[0];
search.value = "mul parts.7.parts.3";
search.oninput();
seen.found = document.getElementById("count").textContent;
seen.marked = document.querySelectorAll(".node.found").length;
document.getElementById("close").click();
seen.open = document.querySelectorAll("details[open]").length;
seen.boxes = document.querySelectorAll("details").length;
search.oninput();
seen.revealed = document.querySelectorAll("details[open]").length;
const report = document.createElement("pre");
report.id = "report";
report.textContent = JSON.stringify(seen);
document.body.replaceChildren(report);
</script>)html";

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

// The text of a page after its scripts have run.
std::string run_in_browser(const std::string& program, const std::string& page, const std::string& folder) {
  const std::string command =
      "timeout 60 " + program +
      " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" + folder +
      "profile --dump-dom file://" + page + " 2>" + folder + "log";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string text;
  char block[4096];
  for (size_t n = 0; (n = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  pclose(pipe);
  return text;
}

std::string report_in(const std::string& dom) {
  const size_t from = dom.find("<pre id=\"report\">"), to = dom.find("</pre>", from);
  if (from == std::string::npos || to == std::string::npos) return "";
  std::string text = dom.substr(from + 17, to - from - 17);
  for (const auto& [entity, character] :
       {std::pair<std::string, std::string>{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (size_t at = 0; (at = text.find(entity, at)) != std::string::npos; at += character.size())
      text.replace(at, entity.size(), character);
  return text;
}

TEST(HtmlPage, OpensIsSearchedAndFolds) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no chromium on this machine; it is a package of that name";
  Ten<Ten<Layer>> model;
  ExportedProgram exported = export_program(model, {randn({4})});
  const std::string folder = ::testing::TempDir() + "weft_html_page/";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "page.html") << cli::html_page(exported, "two thousand") << kProbe;
  const std::string dom = run_in_browser(program, folder + "page.html", folder), report = report_in(dom);
  ASSERT_FALSE(report.empty()) << dom.substr(0, 2000);
  const Json seen = Json::parse(report);
  auto text = [&](const char* key) { return seen.at(key).as_string(); };
  auto number = [&](const char* key) { return seen.at(key).as_int(); };

  EXPECT_LT(seen.at("loaded").as_double(), 2000) << "milliseconds until the page stands";
  EXPECT_EQ(text("title"), "two thousand");
  EXPECT_EQ(number("nodes"), 2000 + 100 + 2);  // operators, scales, the input and the output
  EXPECT_EQ(text("shown"), "2102 nodes");
  // A node's own words: type, schema, module, neighbours.
  EXPECT_EQ(text("panel").find(text("chosen")), 0u);
  for (const char* part :
       {"Type", "f32[4]", "Schema", "aten::", "Module", "parts.2.parts.5", "Uses", "Used by"})
    EXPECT_NE(text("panel").find(part), std::string::npos) << part << " in " << text("panel");
  EXPECT_GE(number("near"), 2);
  EXPECT_EQ(text("followed"), text("input"));
  EXPECT_EQ(text("found"), "10 of 2102");
  EXPECT_EQ(number("marked"), 10);
  // One box for the state and one for each module that was called, all of which fold; a search opens the way
  // to what it finds.
  EXPECT_EQ(number("boxes"), 1 + 10 + 100);
  EXPECT_EQ(number("open"), 0);
  EXPECT_EQ(number("revealed"), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft
