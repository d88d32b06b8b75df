#include "support/verify_aot.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>
#include <unordered_map>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft::testing {
namespace {

bool is_tensor(const Value& value) { return value.is_tensor() && value.tensor_ref().defined(); }

// A copy of each input; one that is given twice has one copy.
MadeInputs copies_of(const ValueList& inputs, bool test_mutation) {
  MadeInputs made;
  std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>> known;
  for (const Value& input : inputs) {
    if (!is_tensor(input)) {
      made.leaves.push_back(input);
      made.inputs.push_back(input);
      continue;
    }
    const Tensor& given = input.tensor_ref();
    auto [found, is_new] = known.try_emplace(given.impl());
    if (is_new) {
      Tensor leaf = given.detach().clone();
      if (given.requires_grad()) leaf.set_requires_grad();
      const bool is_result = test_mutation || (given.requires_grad() && !given.is_leaf());
      found->second = {leaf, is_result ? (test_mutation ? leaf.add(1) : leaf.clone()) : leaf};
    }
    made.leaves.emplace_back(found->second.first);
    made.inputs.emplace_back(found->second.second);
  }
  return made;
}

struct Run {
  ValueList outputs;
  TreeSpec spec;
  std::vector<Tensor> gradients;
};

Run run(const ValueFunction& f, const MadeInputs& made) {
  FlatTree result = tree_flatten(f(made.inputs));
  Run all{result.leaves, result.spec};
  for (const Value& output : all.outputs)
    if (is_tensor(output) && output.tensor_ref().requires_grad()) {
      Tensor total = output.tensor_ref().sum();
      total.backward(ones_like(total), /*retain_graph=*/true);
    }
  for (const Value& leaf : made.leaves) {
    if (!is_tensor(leaf)) continue;
    all.gradients.push_back(leaf.tensor_ref().grad());
    leaf.tensor_ref().set_grad({});
  }
  return all;
}

// Tensors with data that a tensor is made of.
std::vector<Tensor> parts_of(const Tensor& tensor) {
  const Extension* extension = extension_of(tensor);
  if (!extension) return {tensor};
  std::vector<Tensor> parts;
  for (const Tensor& inner : extension->inner_tensors())
    for (const Tensor& part : parts_of(inner)) parts.push_back(part);
  return parts;
}

void expect_same(const Tensor& eager, const Tensor& compiled, const std::string& what) {
  ASSERT_EQ(eager.defined(), compiled.defined()) << what;
  if (!eager.defined()) return;
  EXPECT_EQ(eager.dtype(), compiled.dtype()) << what;
  NoGrad no_grad;
  const std::vector<Tensor> ours = parts_of(eager), theirs = parts_of(compiled);
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(close(theirs[i], ours[i], 1e-5, 1e-5)) << what << "\n"
                                                       << ours[i].to_string() << "\n"
                                                       << theirs[i].to_string();
}

// Extensions share what they are made of.
bool share_memory(const Value& a, const Value& b) {
  if (!is_tensor(a) || !is_tensor(b)) return false;
  for (const Tensor& x : parts_of(a.tensor_ref()))
    for (const Tensor& y : parts_of(b.tensor_ref()))
      if (x.storage() == y.storage()) return true;
  return false;
}
bool are_same(const Value& a, const Value& b) {
  return is_tensor(a) && is_tensor(b) && a.tensor_ref().is_same(b.tensor_ref());
}

void expect_same_aliases(const Run& eager, const Run& compiled, const MadeInputs& ours,
                         const MadeInputs& theirs) {
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    for (size_t k = 0; k < ours.inputs.size(); ++k) {
      EXPECT_EQ(share_memory(eager.outputs[i], ours.inputs[k]),
                share_memory(compiled.outputs[i], theirs.inputs[k]))
          << "output " << i << " and input " << k;
      if (are_same(eager.outputs[i], ours.inputs[k])) {
        EXPECT_TRUE(are_same(compiled.outputs[i], theirs.inputs[k])) << "output " << i << " is input " << k;
      }
    }
    for (size_t k = 0; k < i; ++k)
      EXPECT_EQ(are_same(eager.outputs[i], eager.outputs[k]),
                are_same(compiled.outputs[i], compiled.outputs[k]))
          << "outputs " << i << " and " << k;
    for (size_t k = 0; k < i; ++k)
      EXPECT_EQ(share_memory(eager.outputs[i], eager.outputs[k]),
                share_memory(compiled.outputs[i], compiled.outputs[k]))
          << "outputs " << i << " and " << k;
  }
}

void expect_same_outputs(const Run& eager, const Run& compiled, bool write) {
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    const std::string what = "output " + std::to_string(i);
    if (!is_tensor(eager.outputs[i])) {
      EXPECT_EQ(eager.outputs[i], compiled.outputs[i]) << what;
      continue;
    }
    const Tensor &ours = eager.outputs[i].tensor_ref(), &theirs = compiled.outputs[i].tensor_ref();
    EXPECT_EQ(ours.requires_grad(), theirs.requires_grad()) << what;
    EXPECT_EQ(ours.is_leaf(), theirs.is_leaf()) << what;
    expect_same(ours, theirs, what);
    if (!write || !ours.is_floating_point()) continue;
    ours.mul_(2);
    theirs.mul_(2);
    expect_same(ours, theirs, what + " after mul_");
  }
}

void verify_once(const ValueFunction& f, const ValueFunction& compiled_function,
                 const std::function<MadeInputs()>& maker, const VerifyAot& options) {
  const MadeInputs ours = maker(), theirs = maker();
  const Run eager = run(f, ours), compiled = run(compiled_function, theirs);
  ASSERT_EQ(eager.spec, compiled.spec);
  for (size_t i = 0; i < eager.gradients.size(); ++i)
    expect_same(eager.gradients[i], compiled.gradients[i], "gradient " + std::to_string(i));
  expect_same_aliases(eager, compiled, ours, theirs);
  expect_same_outputs(eager, compiled, options.test_mutation);
  for (size_t i = 0; i < ours.inputs.size(); ++i) {
    if (!is_tensor(ours.inputs[i])) continue;
    const Tensor &before = ours.inputs[i].tensor_ref(), &after = theirs.inputs[i].tensor_ref();
    EXPECT_EQ(before.requires_grad(), after.requires_grad()) << "input " << i;
    // An in-place view of a view counts in eager mode, though nothing was written.
    EXPECT_TRUE(after.version() == 0 || before.version() > 0) << "input " << i;
    ASSERT_TRUE(std::ranges::equal(before.plain_sizes(), after.plain_sizes())) << "input " << i;
    EXPECT_TRUE(std::ranges::equal(before.plain_strides(), after.plain_strides())) << "input " << i;
    expect_same(before, after, "input " + std::to_string(i));
  }
}

}  // namespace

void expect_same_parts(const Tensor& got, const Tensor& wanted) { expect_same(wanted, got, "parts"); }

GraphModule verify_compiled(const ValueFunction& eager, const CompileFunction& compile,
                            const std::function<MadeInputs()>& maker, const VerifyAot& options) {
  GraphModule forward;
  for (bool keep : {true, false}) {
    if (!keep && options.keep_input_mutations) continue;
    SCOPED_TRACE(keep ? "writes kept in the graph" : "writes outside of the graph");
    auto remember = [&](GraphModule& graph, const ValueList& examples) {
      forward = graph;
      return aot::nop(graph, examples);
    };
    verify_once(eager,
                compile({.forward_compiler = remember,
                         .backward_compiler = aot::nop,
                         .partitioner = options.partitioner,
                         .decompositions = options.decompositions,
                         .dynamic = options.dynamic,
                         .keep_inference_input_mutations = keep}),
                maker, options);
  }
  return forward;
}

// The same once more from graphs that are kept: the second program is found where the first one left them.
void verify_cached(const ValueFunction& f, const std::function<MadeInputs()>& maker,
                   const VerifyAot& options) {
  SCOPED_TRACE("from a compile cache");
  std::shared_ptr<aot::CompileCache> cache;
  auto compile_cached = [&](AotOptions aot) {
    aot.cache = cache;
    aot.strict_cache = options.strict_cache;
    return compile(f, aot_eager(aot)).function();
  };
  cache = aot::memory_cache();
  verify_compiled(f, compile_cached, maker, options);
  const size_t misses = cache->counters().misses;
  verify_compiled(f, compile_cached, maker, options);
  EXPECT_EQ(cache->counters().misses, misses);
  EXPECT_TRUE(cache->counters().hits > 0 || !options.strict_cache);
}

GraphModule verify_aot_autograd(const ValueFunction& f, const std::function<MadeInputs()>& maker,
                                const VerifyAot& options) {
  if (options.captured_first) {
    SCOPED_TRACE("captured first");
    verify_compiled(
        f, [&](const AotOptions& aot) { return compile(f, aot_eager(aot)).function(); }, maker, options);
    verify_cached(f, maker, options);
  }
  return verify_compiled(
      f, [&](const AotOptions& aot) { return aot_function(f, aot).function(); }, maker, options);
}

GraphModule verify_aot_autograd(const ValueFunction& f, const ValueList& inputs, const VerifyAot& options) {
  return verify_aot_autograd(f, [&] { return copies_of(inputs, options.test_mutation); }, options);
}

Graphs forward_and_backward(const ValueFunction& f, const ValueList& inputs, const GraphOptions& options) {
  Graphs graphs;
  auto keep = [](GraphModule& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      into = graph;
      return aot::nop(graph, examples);
    };
  };
  AotFunction compiled = aot_function(f, {.forward_compiler = keep(graphs.forward),
                                          .backward_compiler = keep(graphs.backward),
                                          .partitioner = options.partitioner,
                                          .decompositions = aot::default_decompositions(),
                                          .dynamic = options.dynamic});
  compiled.call(inputs).to_tensor().sum().backward();
  return graphs;
}

std::vector<Node*> output_nodes(const GraphModule& graph) {
  std::vector<Node*> nodes;
  for (const Value& output : graph.graph().output_node()->returned().elements())
    nodes.push_back(node_in(output));
  return nodes;
}

Counts counts_of(const GraphModule& graph) {
  return {graph.graph().placeholders().size(), graph.graph().output_node()->returned().elements().size()};
}

// --- text ------------------------------------------------------------------------------------------------

std::string code_of(const GraphModule& module) {
  const std::string code = module.code();
  const size_t first = code.find_first_not_of(" \n"), last = code.find_last_not_of(" \n");
  return code.substr(first, last - first + 1);
}

namespace {

// `x = torch.ops.aten.detach.default(y)` of a y that is a detach itself says nothing new.
std::string without_repeated_detach(std::string code) {
  static const std::regex repeated(
      R"(\n +(detach\w*) = torch\.ops\.aten\.detach\.default\((detach\w*)\)[^\n]*)");
  for (std::smatch match; std::regex_search(code, match, repeated);) {
    const std::string name = match[1], source = match[2];
    code = match.prefix().str() + match.suffix().str();
    code = std::regex_replace(code, std::regex("\\b" + name + "\\b"), source);
  }
  return code;
}

}  // namespace

std::string returned_expressions(const std::string& given) {
  const std::string code = without_repeated_detach(given);
  static const std::regex statement(R"(^ +(\w+) = (.*?)(;  .*)?$)"), word(R"([A-Za-z_]\w*)");
  std::map<std::string, std::string> values;
  auto expanded = [&](const std::string& expression) {
    std::string text;
    auto last = expression.begin();
    for (std::sregex_iterator found(expression.begin(), expression.end(), word), end; found != end; ++found) {
      const auto begin = expression.begin() + found->position();
      text.append(last, begin);
      const auto known = values.find(found->str());
      text += known == values.end() || (begin != expression.begin() && *(begin - 1) == '.') ? found->str()
                                                                                            : known->second;
      last = begin + found->length();
    }
    return text + std::string(last, expression.end());
  };
  std::istringstream lines(code);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.find("return ") != std::string::npos) result += expanded(line);
    else if (std::regex_match(line, match, statement)) {
      values[match[1]] = expanded(match[2]);
      if (line.find("_.") != std::string::npos) result += values[match[1]] + "\n";  // a write
    } else result += line + "\n";
  }
  return result;
}

std::string canonical(const std::string& given) {
  const std::string code = without_repeated_detach(given);
  static const std::regex statement(R"(\n +(\w+) = )"), number(R"(_\d+$)"), word(R"([A-Za-z_]\w*)");
  std::map<std::string, std::string> names;
  std::map<std::string, int> counts;
  for (std::sregex_iterator found(code.begin(), code.end(), statement), end; found != end; ++found) {
    const std::string name = (*found)[1], base = std::regex_replace(name, number, "");
    names.emplace(name, base + "$" + std::to_string(counts[base]++));
  }
  std::string text;
  auto last = code.begin();
  for (std::sregex_iterator found(code.begin(), code.end(), word), end; found != end; ++found) {
    const auto begin = code.begin() + found->position();
    text.append(last, begin);
    const bool is_member = begin != code.begin() && *(begin - 1) == '.';
    const auto known = names.find(found->str());
    text += known == names.end() || is_member ? found->str() : known->second;
    last = begin + found->length();
  }
  return text + std::string(last, code.end());
}

}  // namespace weft::testing
