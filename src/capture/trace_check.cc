#include "capture/trace_check.h"

#include "weft/autograd/autograd.h"
#include "weft/base/diff.h"
#include "weft/base/warning.h"
#include "weft/capture/trace_tools.h"
#include "weft/ops/close.h"
#include "weft/ops/extension.h"

namespace weft {

TracingCheckError::TracingCheckError(std::string graph_difference, std::string tensor_difference,
                                     std::string extra)
    : UserError([&] {
        std::string text = "Tracing failed sanity checks!\n";
        if (!extra.empty()) text += extra + "\n";
        if (!graph_difference.empty())
          text += "ERROR: Graphs differed across invocations!\n" + indent(graph_difference) + "\n";
        if (!tensor_difference.empty())
          text +=
              "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often "
              "indicates "
              "that the tracer has encountered untraceable code.\n" +
              indent(tensor_difference) + "\n";
        return text;
      }()) {}

namespace {

// --- graphs as canonical lines ---------------------------------------------------------------------------

// A line a node, with numbers for names and without what a type would say: two recordings of the same program
// have the same lines.
class CanonicalLines {
 public:
  explicit CanonicalLines(const GraphModule& module) {
    for (const Node& node : module.graph()) {
      numbers_.emplace(&node, numbers_.size());
      nodes_.push_back(&node);
      lines_.push_back(line(node) + "\n");
      if (node.kind() != NodeKind::kGetAttr) continue;
      // A graph that it calls, under the node that reads it.
      std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string()));
      if (!inner) continue;
      const CanonicalLines nested(*inner);
      for (const std::string& line : nested.lines()) {
        nodes_.push_back(&node);
        lines_.push_back("  " + line);
      }
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<const Node*>& nodes() const { return nodes_; }

 private:
  std::string line(const Node& node) const {
    if (node.kind() == NodeKind::kOutput) return "return (" + text(node.args()[0]) + ")";
    std::string args;
    for (const Value& arg : node.args()) args += (args.empty() ? "" : ", ") + text(arg);
    for (const auto& [key, value] : node.kwargs())
      args += (args.empty() ? "" : ", ") + key + "=" + text(value);
    std::string target =
        node.target().op() ? std::string(node.target().op()->name()) : node.target().to_string();
    if (node.kind() == NodeKind::kPlaceholder)
      return fmt::format("%{} : input {}", numbers_.at(&node), target);
    if (node.kind() == NodeKind::kGetAttr)
      return fmt::format("%{} = prim::GetAttr[name=\"{}\"]()", numbers_.at(&node), target);
    return fmt::format("%{} = {}({})", numbers_.at(&node), target, args);
  }
  std::string text(const Value& value) const {
    if (const Node* node = node_in(value)) return fmt::format("%{}", numbers_.at(node));
    if (value.is_sequence()) {
      std::string inside;
      for (const Value& element : value.elements()) inside += (inside.empty() ? "" : ", ") + text(element);
      return (value.is_list() ? "[" : "(") + inside + (value.is_list() ? "]" : ")");
    }
    if (!value.is_dict()) return value.to_string();
    std::string inside;
    for (const auto& [key, element] : value.to_dict())
      inside += (inside.empty() ? "" : ", ") + text(key) + ": " + text(element);
    return "{" + inside + "}";
  }

  std::unordered_map<const Node*, size_t> numbers_;
  std::vector<const Node*> nodes_;
  std::vector<std::string> lines_;
};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Under a heading where in the program a node was recorded; nothing where that is not known.
std::string source_text(const char* heading, const Recording& recording, const Node& node) {
  auto found = recording.places.find(&node);
  std::string text = found == recording.places.end() ? "" : found->second.to_string();
  return text.empty() ? "" : heading + indent(text) + "\n";
}

std::string graph_difference(const Recording& traced, const Recording& check) {
  CanonicalLines a(traced.module), b(check.module);
  if (a.lines() == b.lines()) return {};
  std::string text = "Graph diff:\n" + indent(ndiff(joined(a.lines()), joined(b.lines()))) + "\n";
  for (size_t i = 0; i < std::min(a.lines().size(), b.lines().size()); ++i) {
    if (a.lines()[i] == b.lines()[i]) continue;
    text += "First diverging operator:\nNode diff:\n" + indent(ndiff(a.lines()[i], b.lines()[i])) + "\n";
    text += source_text("Trace source location:\n", traced, *a.nodes()[i]) +
            source_text("Check source location:\n", check, *b.nodes()[i]);
    break;
  }
  return text;
}

// The first constant tensor that is another one in the second recording.
std::string constant_difference(const Recording& traced, const Recording& check) {
  CanonicalLines a(traced.module), b(check.module);
  for (size_t i = 0; i < std::min(a.nodes().size(), b.nodes().size()); ++i) {
    const Node &mine = *a.nodes()[i], &other = *b.nodes()[i];
    if (mine.kind() != other.kind()) return {};
    if (mine.kind() != NodeKind::kGetAttr) {
      if (mine.target() != other.target()) return {};
      continue;
    }
    Value value = traced.module.find(mine.target().to_string());
    Value again = check.module.find(other.target().to_string());
    if (!value.is_tensor() || !again.is_tensor()) continue;
    std::optional<std::string> mismatch =
        find_mismatch(dense_form(value.to_tensor()), dense_form(again.to_tensor()), {.equal_nan = true});
    if (!mismatch) continue;
    return "Node:\n" + indent(a.lines()[i]) + "\n" + source_text("Source Location:\n", traced, mine) +
           "Comparison exception: " + indent(*mismatch);
  }
  return {};
}

// --- one check -------------------------------------------------------------------------------------------

bool is_nondeterministic(const Node& node) {
  const Operator* op = node.target().op();
  if (!op || !op->has(Traits::kRandom)) return false;
  // One that can be told not to draw.
  for (const char* name : {"train", "training"})
    if (std::optional<size_t> at = op->schema().argument_index(name))
      return *at < node.args().size() && node.args()[*at] == Value(true);
  return true;
}

class Check {
 public:
  Check(const TracedCode& code, const Recording& traced, const TraceOptions& options)
      : code_(code), traced_(traced), options_(options) {}

  void run(const Value& arguments, const Kwargs& kwargs) {
    auto copies = [&] { return clone_inputs(arguments); };
    auto named_copies = [&] {
      Kwargs copy;
      for (const auto& [name, value] : kwargs) copy.emplace_back(name, clone_inputs(value));
      return copy;
    };
    {
      TraceOptions quiet = options_;
      quiet.check_trace = false;
      WarningCapture silenced;  // said in the first run
      repeated_ = record_trace(code_, copies(), named_copies(), quiet);
    }
    auto run_what = [&](const char* what, FunctionRef<Value(Args, const Kwargs&)> f) {
      return outputs_of(what, [&] { return f(copies().elements(), named_copies()); });
    };
    ValueList traced =
        run_what("trace", [&](Args args, const Kwargs& named) { return traced_.module.call(args, named); });
    ArgumentNames names(code_.arg_names);
    ValueList plain = run_what("Python function", [&](Args args, const Kwargs& named) {
      return code_.function(names.empty() ? ValueList(args.begin(), args.end())
                                          : names.bind(args, named, code_.name));
    });
    if (compare(traced, plain, "Python function")) {
      ValueList repeated = run_what("repeated trace", [&](Args args, const Kwargs& named) {
        return repeated_.module.call(args, named);
      });
      compare(traced, repeated, "repeated trace");
    }
    std::string graphs = graph_difference(traced_, repeated_);
    std::string constants = constant_difference(traced_, repeated_);
    if (!graphs.empty() || !constants.empty()) throw TracingCheckError(graphs, constants);
  }

 private:
  // A single result counts as one output; what is no tensor is not compared.
  ValueList outputs_of(const char* what, FunctionRef<Value()> f) {
    Value result;
    try {
      result = f();
    } catch (const std::exception& error) {
      std::throw_with_nested(TracingCheckError(
          graph_difference(traced_, repeated_), constant_difference(traced_, repeated_),
          fmt::format("encountered an exception while running the {} with test inputs.\nException:\n{}", what,
                      indent(error.what()))));
    }
    ValueList outputs = result.is_tuple() ? result.elements() : ValueList{result};
    std::erase_if(outputs, [](const Value& output) { return !output.is_tensor(); });
    return outputs;
  }

  bool compare(const ValueList& outputs, const ValueList& reference, const char* what) {
    bool all_close = true;
    for (size_t i = 0; i < std::min(outputs.size(), reference.size()); ++i) {
      const Tensor output = dense_form(outputs[i].tensor_ref()),
                   wanted = dense_form(reference[i].tensor_ref());
      DType wide = is_complex(output.dtype()) || is_complex(wanted.dtype()) ? kComplex128 : kFloat64;
      CloseOptions options{.rtol = options_.check_tolerance,
                           .atol = default_tolerances(output.dtype(), wanted.dtype()).atol,
                           .equal_nan = true};
      std::optional<std::string> mismatch = find_mismatch(output.to(wide), wanted.to(wide), options);
      if (!mismatch) continue;
      maybe_warn_nondeterministic();
      warn(WarningKind::kTracer,
           "Output nr {}. of the traced function does not match the corresponding output of the {}. Detailed "
           "error:\n{}",
           i + 1, what, *mismatch);
      all_close = false;
    }
    return all_close;
  }

  void maybe_warn_nondeterministic() {
    if (std::exchange(has_warned_, true)) return;
    std::string nodes;
    int count = 0;
    for (const Node& node : traced_.module.graph())
      if (is_nondeterministic(node) && count++ < 20)
        nodes += (nodes.empty() ? "" : "\n") + indent(node.line());
    if (nodes.empty()) return;
    warn(WarningKind::kTracer,
         "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n{}\nThis may "
         "cause "
         "errors in trace checking. To disable trace checking, pass check_trace=False to torch.jit.trace()",
         nodes);
  }

  const TracedCode& code_;
  const Recording& traced_;
  const TraceOptions& options_;
  Recording repeated_;
  bool has_warned_ = false;
};

}  // namespace

void check_trace(const TracedCode& code, const Recording& traced, const Value& arguments,
                 const Kwargs& kwargs, const TraceOptions& options) {
  NoGrad no_grad;
  if (options.check_inputs.empty()) {
    Check(code, traced, options).run(arguments, kwargs);
    return;
  }
  for (const Value& inputs : options.check_inputs) {
    Value given = inputs;
    if (code.root) {  // the arguments of each method, by its name
      const Value* own = inputs.is_dict() ? inputs.to_dict().find(code.name) : nullptr;
      require(own, "trace_module: check_inputs must be dictionaries of inputs by method; '{}' is in none",
              code.name);
      given = *own;
    }
    if (options.example_inputs_is_kwarg) Check(code, traced, options).run(Value::tuple({}), as_kwargs(given));
    else Check(code, traced, options).run(example_arguments(given), {});
  }
}

}  // namespace weft
