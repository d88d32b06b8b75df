#include "capture/trace_check.h"

#include "base/diff.h"
#include "graph/script/constants.h"
#include "weft/autograd/autograd.h"
#include "weft/base/warning.h"
#include "weft/capture/trace_tools.h"
#include "weft/ops/close.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"
#include "weft/passes/inline_calls.h"

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

// --- two recordings --------------------------------------------------------------------------------------

// Under a heading where in the program a node was recorded; nothing where that is not known.
std::string source_text(const char* heading, const Recording& recording, const Node& node) {
  auto found = recording.traces.find(&node);
  std::string text = found == recording.traces.end() ? "" : found->second.to_string();
  return text.empty() ? "" : heading + indent(text) + "\n";
}

// The source location of what a line of the view comes from.
std::string source_text(const char* heading, const Recording& recording, const ScriptNode& line) {
  return line.origin ? source_text(heading, recording, *line.origin) : std::string();
}

// A recording as TorchScript writes it.
ScriptGraph view_of(const TracedCode& code, const Recording& recording, ScriptOptions options) {
  if (code.root) options.self_type = "__torch__." + code.root->state()->class_name;
  return script_view(recording.module, options);
}

// The same with the calls of graphs replaced by what they do: a call that was kept in one run and not in the
// other is no difference, and one of another graph is.
Recording with_inlined_calls(const Recording& recording) {
  Recording own{GraphModule(recording.module, recording.module.graph().copy()), recording.result, {}};
  Node* copy = own.module.graph().front();
  for (const Node& node : recording.module.graph()) {
    if (auto found = recording.traces.find(&node); found != recording.traces.end())
      own.traces.emplace(copy, found->second);
    copy = copy->next();
  }
  inline_calls(own.module, [&](const Node& call, Node& inlined) {
    if (auto found = own.traces.find(&call); found != own.traces.end())
      own.traces.emplace(&inlined, StackTrace(found->second));
  });
  return own;
}

// How two recordings of one program differ: without names, without what types tell of tensors, and without
// source locations, which two runs need not share. What is shown has the names.
class Difference {
 public:
  Difference(const TracedCode& code, const Recording& traced, const Recording& check)
      : traced_(code, traced), check_(code, check) {}

  std::string of_graphs() const {
    if (traced_.canonical.to_string() == check_.canonical.to_string()) return {};
    std::string text =
        "Graph diff:\n" + indent(ndiff(traced_.shown.to_string(), check_.shown.to_string())) + "\n";
    for (size_t i = 0; i < common_lines(); ++i) {
      if (line(traced_.canonical, i) == line(check_.canonical, i)) continue;
      text += "First diverging operator:\nNode diff:\n" +
              indent(ndiff(line(traced_.shown, i), line(check_.shown, i))) + "\n";
      text += source_text("Trace source location:\n", traced_.recording, *traced_.shown.nodes()[i]) +
              source_text("Check source location:\n", check_.recording, *check_.shown.nodes()[i]);
      break;
    }
    return text;
  }

  // The first constant tensor that is another one in the second recording.
  std::string of_constants() const {
    for (size_t i = 0; i < common_lines(); ++i) {
      const ScriptNode &mine = *traced_.shown.nodes()[i], &other = *check_.shown.nodes()[i];
      if (mine.kind != other.kind) return {};  // from here on they do not correspond
      std::optional<Tensor> value = constant_in(mine), again = constant_in(other);
      if (!value || !again) continue;
      std::optional<std::string> mismatch =
          find_mismatch(dense_form(*value), dense_form(*again), {.equal_nan = true});
      if (!mismatch) continue;
      return "Node:\n" + indent(line(traced_.shown, i)) + "\n" +
             source_text("Source Location:\n", traced_.recording, mine) +
             "Comparison exception: " + indent(*mismatch);
    }
    return {};
  }

 private:
  struct Side {
    Side(const TracedCode& code, const Recording& own)
        : recording(with_inlined_calls(own)),
          shown(view_of(code, recording, {.types = false})),
          canonical(view_of(code, recording, {.canonical = true, .types = false})) {}
    const Recording recording;
    const ScriptGraph shown, canonical;
  };

  size_t common_lines() const { return std::min(traced_.shown.nodes().size(), check_.shown.nodes().size()); }
  static std::string line(const ScriptGraph& graph, size_t i) {
    return script_line(*graph.nodes()[i], false) + "\n";
  }
  static std::optional<Tensor> constant_in(const ScriptNode& node) {
    const Value* value = node.kind == "prim::Constant" ? node.attribute("value") : nullptr;
    if (!value || !node.output().type.is(ScriptType::Kind::kTensor)) return std::nullopt;
    if (value->is_tensor()) return value->to_tensor();
    return value->is_number() ? std::optional(full({}, value->to_scalar())) : std::nullopt;
  }

  const Side traced_, check_;
};

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
    const Difference difference(code_, traced_, repeated_);
    std::string graphs = difference.of_graphs(), constants = difference.of_constants();
    if (!graphs.empty() || !constants.empty()) throw TracingCheckError(graphs, constants);
  }

 private:
  // A single result counts as one output; what is no tensor is not compared.
  ValueList outputs_of(const char* what, FunctionRef<Value()> f) {
    Value result;
    try {
      result = f();
    } catch (const std::exception& error) {
      const Difference difference(code_, traced_, repeated_);
      std::throw_with_nested(TracingCheckError(
          difference.of_graphs(), difference.of_constants(),
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
    const ScriptGraph view = view_of(code_, traced_, {});
    for (const ScriptNode* line : view.nodes())
      if (line->op && line->origin && is_nondeterministic(*line->origin) && count++ < 20)
        nodes += (nodes.empty() ? "" : "\n") + indent(script_line(*line, true));
    if (nodes.empty()) return;
    warn(WarningKind::kTracer,
         "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n{}\nThis may "
         "cause errors in trace checking. To disable trace checking, pass check_trace=False to "
         "torch.jit.trace(): in C++, trace(f, inputs, {{.check_trace = false}})",
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
