// Lines of the script view, and the blocks that they go to.
#include "graph/script/builder.h"

#include "graph/script/constants.h"
#include "weft/base/error.h"

namespace weft {

using Kind = ScriptType::Kind;

ScriptNode& ScriptStore::make_node(std::string kind, std::vector<const ScriptValue*> inputs) {
  ScriptNode& node = nodes.emplace_back();
  node.kind = std::move(kind);
  node.inputs = std::move(inputs);
  node.number = nodes.size() - 1;
  return node;
}

ScriptValue& ScriptStore::make_value(ScriptType type, const ScriptNode* node) {
  ScriptValue& value = values.emplace_back();
  value.type = std::move(type);
  value.node = node;
  value.number = values.size() - 1;
  return value;
}

ScriptValue& ScriptProgram::make_value(ScriptType type, const ScriptNode* node, ScriptBlock& block) {
  homes.push_back(&block);
  return store->make_value(std::move(type), node);
}

std::vector<ScriptNode*> ScriptProgram::lines(const ScriptBlock& block) const {
  std::vector<ScriptNode*> all;
  auto add_conversions = [&](const ScriptNode* node) {
    auto found = conversions.find(node);
    if (found != conversions.end()) all.insert(all.end(), found->second.rbegin(), found->second.rend());
  };
  auto add = [&](const std::vector<ScriptNode*>& nodes) {
    for (ScriptNode* node : nodes) {
      all.push_back(node);
      add_conversions(node);
    }
  };
  for (auto chain = block.attribute_chains.rbegin(); chain != block.attribute_chains.rend(); ++chain)
    add(*chain);
  add(block.pooled);
  if (!block.parent) add_conversions(nullptr);
  add(block.body);
  return all;
}

ScriptBuilder::ScriptBuilder(const ScriptOptions& options) : options_(options) {
  program_.store = std::make_shared<ScriptStore>();
  here_ = program_.blocks.emplace_back(std::make_unique<ScriptBlock>()).get();
  if (options.self_type.empty()) return;
  here_->self = input("self", {.kind = Kind::kClass, .name = options.self_type});
}

namespace {

template <typename F>
void for_each_below(const nn::Module& root, const F& f) {
  std::vector<std::pair<std::string, const nn::ModuleState*>> pending = {{"", root.state().get()}};
  while (!pending.empty()) {
    auto [path, state] = std::move(pending.back());
    pending.pop_back();
    for (const nn::ModuleState::Child& child : state->children) {
      std::string child_path = path.empty() ? child.name : path + "." + child.name;
      f(child_path, *child.state);
      pending.emplace_back(std::move(child_path), child.state.get());
    }
  }
}

}  // namespace

void ScriptBuilder::note_class(const std::string& path, const std::string& class_name) {
  if (!class_name.empty()) types_.try_emplace(path, "__torch__." + class_name);
}

void ScriptBuilder::note_classes(const nn::Module& root) {
  for_each_below(root, [&](const std::string& path, const nn::ModuleState& module) {
    note_class(path, module.class_name);
  });
}

void ScriptBuilder::note_types(const nn::Module& root) {
  for_each_below(root, [&](const std::string& path, const nn::ModuleState& module) {
    if (module.qualified_class.starts_with("__torch__.")) types_.try_emplace(path, module.qualified_class);
  });
}

ScriptType ScriptBuilder::class_type(const std::string& path) const {
  auto known = types_.find(path);
  return {.kind = Kind::kClass, .name = known == types_.end() ? "__torch__.Module" : known->second};
}

// --- where lines go --------------------------------------------------------------------------------------

std::string prefix_of_children(const ModuleScope& root) { return root.path.empty() ? "" : root.path + "."; }

void ScriptBuilder::begin(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  origin_ = &node;
  source_ = meta ? meta->source : "";
  // A node that notes no modules was written by whoever wrote the one before it.
  if (options_.self_type.empty() || !meta || meta->modules.empty()) return;
  std::vector<ScriptBlock*> open_blocks(here_->depth + 1);
  for (ScriptBlock* block = here_; block; block = block->parent) open_blocks[block->depth] = block;
  here_ = open_blocks[0];
  const std::string root = prefix_of_children(meta->modules[0]);
  for (size_t i = 1; i < meta->modules.size(); ++i) {
    const ModuleScope& scope = meta->modules[i];
    std::string path = scope.path.starts_with(root) ? scope.path.substr(root.size()) : scope.path;
    bool is_open =
        i < open_blocks.size() && open_blocks[i]->path == path && open_blocks[i]->call_number == scope.call;
    if (!is_open) open_blocks.resize(i);
    here_ = is_open ? open_blocks[i] : &open(*here_, path, scope);
  }
}

void ScriptBuilder::begin_output() {
  origin_ = nullptr;
  source_.clear();
  here_ = program_.blocks[0].get();
}

ScriptBlock& ScriptBuilder::open(ScriptBlock& parent, const std::string& path, const ModuleScope& module) {
  ScriptValue* owner = attribute_in(parent, path, class_type(path));
  const int64_t number = calls_[path]++;
  ScriptNode& call = program_.store->make_node("prim::CallMethod", {owner});
  ScriptBlock& block = *program_.blocks.emplace_back(std::make_unique<ScriptBlock>());
  block.parent = &parent;
  block.depth = parent.depth + 1;
  block.path = path;
  block.method = number ? "forward" + std::to_string(number) : "forward";
  block.call_number = module.call;
  block.module = module.path;
  block.call = &call;
  block.self = owner;
  if (!options_.inline_calls) {
    block.self = &program_.make_value(owner->type, nullptr, block);
    name(block.self, "self");
  }
  call.attributes.emplace_back("name", block.method);
  parent.body.push_back(&call);
  program_.callees[&call] = &block;
  return block;
}

const std::string& ScriptBuilder::scope() {
  if (!here_->scope.empty() || !here_->parent) return here_->scope;
  std::vector<const std::string*> modules;
  for (const ScriptBlock* block = here_; block->parent; block = block->parent)
    modules.push_back(&block->module);
  for (auto module = modules.rbegin(); module != modules.rend(); ++module)
    here_->scope += (here_->scope.empty() ? "" : "/") + **module;
  return here_->scope;
}

// --- lines -----------------------------------------------------------------------------------------------

ScriptValue* ScriptBuilder::input(std::string wanted, ScriptType type) {
  ScriptValue& value = program_.make_value(std::move(type), nullptr, *program_.blocks[0]);
  name(&value, std::move(wanted));
  program_.inputs.push_back(&value);
  return &value;
}

ScriptNode& ScriptBuilder::line(std::string kind, Inputs inputs) {
  ScriptNode& node = program_.store->make_node(std::move(kind), std::move(inputs));
  node.origin = Ref<const Node>(origin_);
  node.scope = scope();
  node.source = source_;
  here_->body.push_back(&node);
  return node;
}

ScriptValue* ScriptBuilder::result(ScriptNode& node, ScriptType type) {
  ScriptValue& value = program_.make_value(std::move(type), &node, *here_);
  node.outputs.push_back(&value);
  return &value;
}

ScriptValue* ScriptBuilder::value(std::string kind, Inputs inputs, ScriptType type) {
  return result(line(std::move(kind), std::move(inputs)), std::move(type));
}

ScriptValue* ScriptBuilder::made(std::string kind, Inputs inputs, ScriptType type) {
  ScriptNode& node = line(std::move(kind), std::move(inputs));
  node.source.clear();
  return result(node, std::move(type));
}

ScriptValue* ScriptBuilder::constant(const Value& value, ScriptType type) {
  std::string key;
  if (options_.pool_constants) {
    key = type.to_string() + "=";
    if (value.is_tensor()) key += std::to_string(value.tensor_ref().impl()->serial());
    else if (!value.is_none()) key += constant_text(value, type);
    auto known = here_->pool.find(key);
    if (known != here_->pool.end()) return known->second;
  }
  ScriptNode& node = line("prim::Constant", {});
  if (value.is_none()) node.source.clear();
  else node.attributes.emplace_back("value", value);
  ScriptValue* made = result(node, std::move(type));
  if (options_.pool_constants) {
    here_->body.pop_back();
    here_->pooled.push_back(&node);
    here_->pool.emplace(std::move(key), made);
  }
  return made;
}

ScriptValue* ScriptBuilder::function(const std::string& name) {
  ScriptNode& node = line("prim::Constant", {});
  node.attributes.emplace_back("name", name);
  return result(node, {.kind = Kind::kFunction});
}

ScriptValue* ScriptBuilder::conversion(const ScriptValue& tensor, std::string_view kind, ScriptType type) {
  ScriptNode& node = program_.store->make_node("aten::" + std::string(kind), {&tensor});
  node.origin = Ref<const Node>(origin_);
  node.scope = scope();
  node.source = source_;
  ScriptValue& number = program_.make_value(std::move(type), &node, program_.home(tensor));
  node.outputs.push_back(&number);
  program_.conversions[tensor.node].push_back(&node);
  return &number;
}

void ScriptBuilder::name(ScriptValue* value, std::string name) {
  value->name = std::move(name);
  value->is_named = true;
}

// --- attributes ------------------------------------------------------------------------------------------

ScriptValue* ScriptBuilder::module_attribute(const std::string& path) {
  return attribute_in(*here_, path, class_type(path));
}
ScriptValue* ScriptBuilder::tensor_attribute(const std::string& path, const ScriptType& type) {
  return attribute_in(*here_, path, type);
}

ScriptValue* ScriptBuilder::attribute_in(ScriptBlock& block, const std::string& path,
                                         const ScriptType& type) {
  // The innermost block whose module the path leads through; those within borrow what it finds.
  std::vector<ScriptBlock*> borrowers;
  ScriptBlock* owner = &block;
  for (; owner->parent && !owner->attributes.contains(path); owner = owner->parent) {
    if (path.starts_with(owner->path) && path.size() > owner->path.size() && path[owner->path.size()] == '.')
      break;
    borrowers.push_back(owner);
  }
  auto [known, is_new] = owner->attributes.try_emplace(path, nullptr);
  if (is_new) known->second = chain(*owner, path, type);
  ScriptValue* value = known->second;
  for (ScriptBlock* borrower : borrowers) {
    borrower->attributes[path] = value;
    borrower->borrowed.emplace_back(value, type);
  }
  return value;
}

// Of a tensor that a module owns nothing is known: another may replace it.
ScriptValue* ScriptBuilder::chain(ScriptBlock& block, const std::string& path, const ScriptType& type) {
  std::vector<ScriptNode*>& nodes = block.attribute_chains.emplace_back();
  ScriptValue* value = block.self;
  for (size_t at = block.path.empty() ? 0 : block.path.size() + 1; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    const std::string part = path.substr(at, end - at);
    ScriptNode& node = program_.store->make_node("prim::GetAttr", {value});
    node.attributes.emplace_back("name", part);
    value = &program_.make_value(end == path.size() ? type.erased() : class_type(path.substr(0, end)), &node,
                                 block);
    node.outputs.push_back(value);
    name(value, part.empty() || std::isdigit(static_cast<unsigned char>(part[0])) ? "_" + part : part);
    nodes.push_back(&node);
    at = end + 1;
  }
  return value;
}

}  // namespace weft
