#include "html_page.h"

#include "graph_json.h"

namespace weft::cli {
namespace {

constexpr const char* kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { --line: #d8dee4; --faint: #656d76; --mark: #fff3b0; --accent: #0b5cad; }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: #1f2328; background: #f6f8fa; }
header { position: sticky; top: 0; z-index: 2; display: flex; gap: 12px; align-items: center; padding: 8px 16px;
  background: #fff; border-bottom: 1px solid var(--line); }
header h1 { font-size: 15px; margin: 0; }
header input { flex: 1; max-width: 420px; padding: 5px 9px; border: 1px solid var(--line); border-radius: 6px; font: inherit; }
header button { padding: 4px 10px; border: 1px solid var(--line); border-radius: 6px; background: #f6f8fa; font: inherit; cursor: pointer; }
#count { color: var(--faint); }
main { display: grid; grid-template-columns: minmax(0, 1fr) 440px; gap: 0; }
#tree { padding: 12px 16px 40px; }
#panel { position: sticky; top: 46px; height: calc(100vh - 46px); overflow: auto; padding: 14px 16px; background: #fff;
  border-left: 1px solid var(--line); }
details { margin: 6px 0; border: 1px solid var(--line); border-radius: 8px; background: #fff; }
details details { margin: 6px 8px; }
summary { cursor: pointer; padding: 5px 10px; font-weight: 600; }
summary small { font-weight: 400; color: var(--faint); margin-left: 6px; }
.node { display: grid; grid-template-columns: 190px 200px 1fr; gap: 8px; padding: 2px 10px 2px 14px; cursor: pointer;
  font: 12px/1.6 ui-monospace, monospace; border-left: 4px solid #b6c2cf; margin: 1px 6px; background: #fff; }
.node span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.node .type { color: var(--faint); }
.node:hover { background: #eef4fb; }
.node.found { background: var(--mark); }
.node.chosen { background: #dbeafe; }
.node.near { background: #eaf7ee; }
.placeholder { border-left-color: #2f9e63; } .get_attr { border-left-color: #8a63c8; } .output { border-left-color: #d0672c; }
.call_function { border-left-color: #4a7fb5; }
#panel h2 { font: 600 15px ui-monospace, monospace; margin: 0 0 8px; overflow-wrap: anywhere; }
#panel h3 { font-size: 12px; text-transform: uppercase; letter-spacing: .04em; color: var(--faint); margin: 14px 0 4px; }
#panel pre { margin: 0; padding: 8px; background: #f6f8fa; border-radius: 6px; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 12px/1.5 ui-monospace, monospace; }
#panel a { color: var(--accent); cursor: pointer; margin-right: 8px; font: 12px ui-monospace, monospace; display: inline-block; }
@media (max-width: 900px) { main { grid-template-columns: 1fr; } #panel { position: static; height: auto; border-left: 0; } }
</style>)html";

constexpr const char* kBody = R"html(</head><body>
<header><h1 id="title"></h1><input id="search" type="search" placeholder="Search names, operators, types, modules  ( / )">
<span id="count"></span><button id="open">Open all</button><button id="close">Fold all</button></header>
<main><div id="tree"></div><aside id="panel"><h3>Program</h3><div id="about"></div></aside></main>
<script>
const nodes = [], byName = new Map(), rows = new Map();
function collect(list, prefix) {
  for (const node of list) {
    node.key = prefix + node.name; node.prefix = prefix;
    nodes.push(node); byName.set(node.key, node);
    if (node.graph) collect(node.graph, node.key + "/");
  }
}
collect(program.nodes, "");
program.inputs.forEach((spec, i) => { program.nodes[i].spec = spec; });
const element = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls; if (text !== undefined) e.textContent = text; return e; };

// What it calls, or which of the program's inputs it is.
const called = node => node.spec ? node.spec.kind.toLowerCase().replace("_", " ") + " " + node.spec.target : node.target;

// Parameters, buffers and constants share a box that is closed at first. Neighbours of one module share a box; a module
// that is called again has another one.
function fill(parent, list) {
  let open = [];  // [path, box]
  const isState = node => node.spec && node.spec.kind !== "USER_INPUT";
  const count = list.filter(isState).length, state = element("details");
  if (count) { const head = element("summary", "", "State"); head.append(element("small", "", count + " tensors")); state.append(head); parent.append(state); }
  for (const node of list) {
    const path = (node.modules || []).filter(m => m[0] !== "_empty_nn_module_stack_from_metadata_hook").map(m => m[0] + "\u0000" + m[1]);
    let depth = 0;
    while (depth < open.length && depth < path.length && open[depth][0] === path[depth]) ++depth;
    open.length = depth;
    for (; depth < path.length; ++depth) {
      const [name, type] = path[depth].split("\u0000");
      if (!name && depth === 0) { open.push([path[depth], open.length ? open[open.length - 1][1] : parent]); continue; }
      const box = element("details"); box.open = true;
      const head = element("summary", "", name || "(root)"); head.append(element("small", "", type)); box.append(head);
      (open.length ? open[open.length - 1][1] : parent).append(box);
      open.push([path[depth], box]);
    }
    const row = element("div", "node " + node.kind);
    row.append(element("span", "", node.name), element("span", "type", node.type || ""), element("span", "", called(node)));
    row.onclick = () => choose(node);
    rows.set(node.key, row);
    (isState(node) ? state : open.length ? open[open.length - 1][1] : parent).append(row);
    if (node.graph) {
      const box = element("details"); box.append(element("summary", "", node.name + " (a graph inside)"));
      (open.length ? open[open.length - 1][1] : parent).append(box);
      fill(box, node.graph);
    }
  }
}
fill(document.getElementById("tree"), program.nodes);

let marked = [];
function reveal(row) {
  for (let e = row.parentElement; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  row.scrollIntoView({block: "center"});
}
function choose(node, jump) {
  for (const row of marked) row.classList.remove("chosen", "near");
  marked = [];
  const mark = (key, cls) => { const row = rows.get(key); if (row) { row.classList.add(cls); marked.push(row); } };
  mark(node.key, "chosen");
  for (const other of [...node.inputs, ...node.users]) mark(node.prefix + other, "near");
  const panel = document.getElementById("panel"); panel.replaceChildren();
  panel.append(element("h2", "", node.name));
  const part = (title, text) => { if (!text) return; panel.append(element("h3", "", title), element("pre", "", text)); };
  const links = (title, names) => {
    if (!names.length) return;
    panel.append(element("h3", "", title + " (" + names.length + ")"));
    for (const name of names) { const a = element("a", "", name); a.onclick = () => choose(byName.get(node.prefix + name), true); panel.append(a); }
  };
  part("Type", node.type); part("Call", node.line); part("Schema", node.schema);
  part("Module", (node.modules || []).map(m => (m[0] || "(root)") + ": " + m[1]).join("\n"));
  links("Uses", [...new Set(node.inputs)]); links("Used by", [...new Set(node.users)]);
  part("Stack trace", node.stack_trace);
  if (jump) reveal(rows.get(node.key));
  history.replaceState(null, "", "#" + encodeURIComponent(node.key));
}

const search = document.getElementById("search"), count = document.getElementById("count");
search.oninput = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0, first = null;
  for (const node of nodes) {
    const text = (node.name + " " + called(node) + " " + (node.type || "") + " " + (node.modules || []).join(" ")).toLowerCase();
    const hit = words.length > 0 && words.every(word => text.includes(word));
    rows.get(node.key).classList.toggle("found", hit);
    if (hit) { ++found; first = first || node; }
  }
  count.textContent = words.length ? found + " of " + nodes.length : nodes.length + " nodes";
  if (first) reveal(rows.get(first.key));
};
search.onkeydown = event => { if (event.key === "Enter") { const hit = nodes.find(n => rows.get(n.key).classList.contains("found")); if (hit) choose(hit, true); } };
document.onkeydown = event => { if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); } };
document.getElementById("open").onclick = () => document.querySelectorAll("details").forEach(d => d.open = true);
document.getElementById("close").onclick = () => document.querySelectorAll("details").forEach(d => d.open = false);
count.textContent = nodes.length + " nodes";
document.getElementById("title").textContent = title; document.title = title;
const about = document.getElementById("about");
const list = (name, lines) => { if (lines.length) about.append(element("h3", "", name), element("pre", "", lines.join("\n"))); };
list("Inputs", program.inputs.map((s, i) => program.nodes[i].name + ": " + s.kind + (s.target ? " " + s.target : "")));
list("Outputs", program.outputs.map(s => s.kind + (s.target ? " " + s.target : "")));
list("Ranges", program.ranges.map(r => r.expression + " in " + r.range));
list("Guards", program.guards);
const wanted = byName.get(decodeURIComponent(location.hash.slice(1)));
if (wanted) choose(wanted, true);
</script></body></html>
)html";

// As text of a script: nothing in it can end the script.
std::string script_text(const std::string& json) {
  std::string text;
  for (const char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

std::string html_page(const ExportedProgram& program, const std::string& title) {
  return std::string(kHead) + "<script>const title = " + script_text(Json(title).to_text()) +
         ";\nconst program = " + script_text(graph_json(program).to_text()) + ";</script>" + kBody;
}

}  // namespace weft::cli
