#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "commands.h"
#include "model_file.h"
#include "program_inputs.h"
#include "text_output.h"
#include "weft/autograd/grad_node.h"
#include "weft/core/from_data.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

// Symbols of sizes by their names, and what they are to be.
using Dims = std::vector<std::pair<std::string, int64_t>>;

// The first rows of a tensor along a dim, again and again where there are too few.
Tensor with_size(const Tensor& tensor, int64_t dim, int64_t size) {
  const int64_t own = tensor.plain_sizes()[static_cast<size_t>(dim)];
  if (own == 0 && size > 0) throw UsageError("an example without elements cannot be made larger");
  std::vector<int64_t> rows(static_cast<size_t>(size));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i) % own;
  return index_select(tensor, dim, from_data<int64_t>(rows));
}

void set_dims(const ExportedProgram& program, const Dims& dims, ProgramInputs& inputs) {
  std::vector<bool> used(dims.size(), false);
  std::vector<std::string> known;
  size_t leaf = 0;
  const std::vector<Node*> placeholders = program.graph().placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec::Kind kind = program.inputs()[i].kind;
    if (kind != InputSpec::Kind::kUserInput && kind != InputSpec::Kind::kConstantInput) continue;
    Value& input = inputs.leaves[leaf++];
    const NodeMeta* meta = placeholders[i]->meta_or_null();
    if (!meta || !meta->value.is_tensor() || !input.is_tensor()) continue;
    const SymIntSpan sizes = meta->value.tensor_ref().sizes();
    for (size_t d = 0; d < sizes.size(); ++d) {
      const std::string name = sizes[d].to_string();
      if (sizes[d].is_symbolic() && std::ranges::find(known, name) == known.end()) known.push_back(name);
      for (size_t k = 0; k < dims.size(); ++k)
        if (dims[k].first == name) {
          input = with_size(input.tensor_ref(), static_cast<int64_t>(d), dims[k].second);
          used[k] = true;
        }
    }
  }
  for (size_t k = 0; k < dims.size(); ++k)
    if (!used[k])
      throw UsageError(
          fmt::format("--dim {}: no size of an input is called that; there are {}", dims[k].first,
                      known.empty() ? "none that can change" : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

int bench(const BenchCommand& command) {
  require_engine(command.engine);
  const double began = now();
  const ExportedProgram program = load_model(command);
  ProgramInputs inputs = inputs_of(program, command.inputs);
  set_dims(program, command.dims, inputs);
  const GraphModule module = program.module();
  const double loaded = now();
  NoGrad no_grad;
  call_with(module, program, inputs.leaves);
  const double first = now();
  std::vector<double> times;
  {
    Progress progress("running", command.seconds);
    while (times.size() < 3 || now() - first < command.seconds) {
      const double start = now();
      call_with(module, program, inputs.leaves);
      times.push_back(now() - start);
      progress.show(now() - first,
                    fmt::format("{:.1f} runs/s", static_cast<double>(times.size()) / (now() - first)));
    }
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2], best = times.front(), slow = times[times.size() * 95 / 100];
  if (command.json) {
    fmt::print("{}\n", Json(Json::Object{{"load", loaded - began},
                                         {"first", first - loaded},
                                         {"runs", static_cast<int64_t>(times.size())},
                                         {"median", median},
                                         {"best", best},
                                         {"percentile_95", slow}})
                           .to_text());
    return kFine;
  }
  fmt::print("load {}, first run {}, then {} runs: median {}, best {}, 95 % below {}\n",
             duration_text(loaded - began), duration_text(first - loaded), times.size(),
             duration_text(median), duration_text(best), duration_text(slow));
  return kFine;
}

}  // namespace weft::cli
