#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "base/json.h"
#include "commands.h"
#include "export/input_checks.h"
#include "losses.h"
#include "model_file.h"
#include "program_inputs.h"
#include "text_output.h"
#include "weft/aot/train_step.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/random.h"
#include "weft/core/from_data.h"
#include "weft/io/pt2.h"
#include "weft/nn/functional.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

// The data of a training: inputs of the program and, for losses that have one, a target, with rows to choose
// from.
class TrainingData {
 public:
  TrainingData(const ExportedProgram& program, const TrainCommand& command) : program_(program) {
    NamedTensors given = read_tensors(command.data);
    if (!command.target.empty()) {
      const Tensor* target = find(given, command.target);
      if (!target)
        throw FormatError(fmt::format("{}: there is no target '{}'", command.data, command.target));
      target_ = *target;
      std::erase_if(given, [&](const auto& entry) { return entry.first == command.target; });
    }
    inputs_ = inputs_of(program, given, command.data);
    if (has_target()) {
      rows_ = target_.dim() > 0 ? target_.plain_sizes()[0] : 0;
      if (command.batch > 0 &&
          std::ranges::none_of(inputs_.leaves, [&](const Value& leaf) { return has_rows(leaf); }))
        throw FormatError(fmt::format("{}: the target '{}' has {} rows, and no input has as many",
                                      command.data, command.target, rows_));
      return;
    }
    for (const Value& leaf : inputs_.leaves)
      if (leaf.is_tensor() && leaf.tensor_ref().dim() > 0)
        rows_ = std::max(rows_, leaf.tensor_ref().plain_sizes()[0]);
  }

  const ProgramInputs& inputs() const { return inputs_; }
  bool has_target() const { return target_.defined(); }
  int64_t rows() const { return rows_; }
  // Whether the first size of an input may be another than the example's.
  bool is_dynamic() const {
    const std::vector<Node*> placeholders = program_.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const NodeMeta* meta = placeholders[i]->meta_or_null();
      if (program_.inputs()[i].kind != InputSpec::Kind::kUserInput || !meta || !meta->value.is_tensor())
        continue;
      const SymIntSpan sizes = meta->value.tensor_ref().sizes();
      if (!sizes.empty() && sizes[0].is_symbolic()) return true;
    }
    return false;
  }

  // The leaves of a batch, and the target behind them; a step may write to them, and leaves the data as it
  // is.
  ValueList batch(const std::vector<int64_t>& rows) const {
    const Tensor index = from_data<int64_t>(rows);
    auto chosen = [&](const Tensor& tensor) {
      return tensor.dim() > 0 && tensor.plain_sizes()[0] == rows_ ? index_select(tensor, 0, index)
                                                                  : tensor.clone();
    };
    ValueList all;
    for (const Value& leaf : inputs_.leaves)
      all.push_back(leaf.is_tensor() ? Value(chosen(leaf.tensor_ref())) : leaf);
    if (target_.defined()) all.emplace_back(chosen(target_));
    return all;
  }
  ValueList whole() const {
    ValueList all = copies_of(inputs_.leaves);
    if (target_.defined()) all.emplace_back(target_);
    return all;
  }

 private:
  bool has_rows(const Value& leaf) const {
    return leaf.is_tensor() && leaf.tensor_ref().dim() > 0 && leaf.tensor_ref().plain_sizes()[0] == rows_;
  }

  const ExportedProgram& program_;
  ProgramInputs inputs_;
  Tensor target_;
  int64_t rows_ = 0;
};

// The loss of a batch.
ValueFunction loss_of(const TrainCommand& command, const GraphModule& module, const ExportedProgram& program,
                      const TrainingData& data) {
  if (command.loss == "cross_entropy" || command.loss == "mse") {
    if (!data.has_target())
      throw UsageError(fmt::format("the loss {} needs a target: --target KEY", command.loss));
    return [&, is_mse = command.loss == "mse"](Args batch) -> Value {
      const ValueList leaves(batch.begin(), batch.end() - 1);
      const Tensor output = tree_leaves(call_with(module, program, leaves)).at(0).to_tensor();
      const Tensor target = batch.back().to_tensor();
      return is_mse ? mse_loss(output, target) : cross_entropy_loss(output, target);
    };
  }
  if (data.has_target())
    throw UsageError(fmt::format("the loss {} has no target; choose mse or cross_entropy", command.loss));
  auto of_outputs = std::make_shared<OutputLoss>(command.loss, module, program, data.inputs().leaves);
  return [&, of_outputs](Args batch) -> Value {
    return of_outputs->of(call_with(module, program, ValueList(batch.begin(), batch.end())));
  };
}

std::unique_ptr<optim::Optimizer> optimizer_of(const TrainCommand& command, const GraphModule& module) {
  std::vector<Tensor> parameters;
  for (const auto& [name, tensor] : module.named_parameters())
    if (tensor.requires_grad()) parameters.push_back(tensor);
  if (parameters.empty()) throw UsageError("the program has no parameter that can be trained");
  if (command.optimizer == "sgd")
    return std::make_unique<optim::SGD>(parameters,
                                        optim::SgdOptions{.lr = command.lr,
                                                          .momentum = command.momentum,
                                                          .weight_decay = command.weight_decay.value_or(0)});
  if (command.momentum != 0) throw UsageError("--momentum is for sgd; adamw has its own");
  return std::make_unique<optim::AdamW>(
      parameters, optim::AdamWOptions{.lr = command.lr, .weight_decay = command.weight_decay.value_or(1e-2)});
}

// The rows of each step of an epoch.
std::vector<std::vector<int64_t>> batches(const TrainCommand& command, int64_t rows, bool keeps_short,
                                          std::mt19937_64& random) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  if (command.shuffle)
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<std::vector<int64_t>> all;
  const auto size = static_cast<size_t>(command.batch);
  for (size_t first = 0; first < order.size(); first += size) {
    const size_t last = std::min(first + size, order.size());
    if (last - first < size && !keeps_short) break;
    all.emplace_back(order.begin() + static_cast<ptrdiff_t>(first),
                     order.begin() + static_cast<ptrdiff_t>(last));
  }
  return all;
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json parameter_sums(const GraphModule& module) {
  NoGrad no_grad;
  Json::Object all;
  for (const auto& [name, tensor] : module.named_parameters()) {
    const Tensor wide = tensor.detach().to(kFloat64);
    all[name] = Json::Object{{"sum", number_or_null(wide.sum().item().to_double())},
                             {"abs_sum", number_or_null(wide.abs().sum().item().to_double())}};
  }
  return all;
}

// Whether a value of the graph has a size, or is a number, that only a run can tell.
bool has_sizes_from_data(const ExportedProgram& program) {
  const Ref<ShapeEnv>& env = program.shape_env();
  return env && std::ranges::any_of(env->symbols(), [](const sym::Symbol& symbol) {
           return symbol.backing == sym::Backing::kUnbacked;
         });
}

class Training {
 public:
  Training(const TrainCommand& command, const ExportedProgram& program)
      : command_(command),
        program_(program),
        module_(program.module()),
        data_(program, command),
        optimizer_(optimizer_of(command, module_)),
        loss_(loss_of(command, module_, program, data_)) {
    if (command.batch > data_.rows())
      throw UsageError(fmt::format("--batch {} is more than the {} rows of {}", command.batch, data_.rows(),
                                   command.data));
  }

  int run() {
    manual_seed(command_.seed);
    const double began = now();
    command_.batch > 0 ? run_batches() : run_whole();
    // As the last step left it: the forward of one more loss may write to buffers.
    if (!command_.output.empty()) save_pt2(program_, command_.output);
    losses_.push_back(final_loss());
    const double seconds = now() - began;
    if (!command_.log.empty()) write_log();
    report(seconds);
    return kFine;
  }

 private:
  // A step for each number of rows: there are two at most, and no size is mistaken for another.
  TrainStep& step_of(int64_t rows) {
    const auto known = steps_by_rows_.find(rows);
    if (known != steps_by_rows_.end()) return known->second;
    TrainStepOptions options;
    options.dynamic = has_sizes_from_data(program_);
    return steps_by_rows_.try_emplace(rows, module_, aot::TrainProgram{.loss = loss_}, *optimizer_, options)
        .first->second;
  }
  int64_t epochs() const {
    return command_.epochs > 0 ? command_.epochs : (command_.steps > 0 ? INT64_MAX : 1);
  }
  bool is_done() const { return command_.steps > 0 && steps_ >= command_.steps; }

  void step(const ValueList& batch, Progress& progress, double total, int64_t rows) {
    losses_.push_back(tree_leaves(step_of(rows).call(batch)).at(0).to_tensor().item().to_double());
    ++steps_;
    progress.show(static_cast<double>(steps_),
                  fmt::format("step {} of {:.0f}, loss {:.4g},", steps_, total, losses_.back()));
  }

  void run_whole() {
    const int64_t count = command_.steps > 0 ? command_.steps : epochs();
    Progress progress("training", static_cast<double>(count));
    for (int64_t i = 0; i < count; ++i)
      step(data_.whole(), progress, static_cast<double>(count), data_.rows());
  }

  void run_batches() {
    std::mt19937_64 random(command_.seed);
    const bool keeps_short = data_.is_dynamic() && takes(data_.rows() % command_.batch);
    const int64_t in_epoch =
        keeps_short ? (data_.rows() + command_.batch - 1) / command_.batch : data_.rows() / command_.batch;
    const double total = static_cast<double>(command_.steps > 0 ? command_.steps : in_epoch * epochs());
    Progress progress("training", total);
    for (int64_t epoch = 1; epoch <= epochs() && !is_done(); ++epoch) {
      const size_t first = losses_.size();
      for (const std::vector<int64_t>& rows : batches(command_, data_.rows(), keeps_short, random)) {
        step(data_.batch(rows), progress, total, static_cast<int64_t>(rows.size()));
        if (is_done()) break;
      }
      const double mean =
          std::accumulate(losses_.begin() + static_cast<ptrdiff_t>(first), losses_.end(), 0.0) /
          static_cast<double>(losses_.size() - first);
      if (!command_.json) fmt::print("epoch {}: mean loss {:.6g}\n", epoch, mean);
    }
  }

  // Whether the program allows a batch of so many rows.
  bool takes(int64_t rows) const {
    std::vector<int64_t> first(static_cast<size_t>(rows));
    std::iota(first.begin(), first.end(), 0);
    ValueList leaves = data_.batch(first);
    if (data_.has_target()) leaves.pop_back();
    try {
      InputChecks(program_).check(leaves);
    } catch (const AssertionError&) {
      return false;
    }
    return true;
  }

  // On all of the data, with the parameters as they are in the end.
  double final_loss() const {
    NoGrad no_grad;
    return tree_leaves(loss_(data_.whole())).at(0).to_tensor().item().to_double();
  }

  void write_log() const {
    Json::Array losses;
    for (double loss : losses_) losses.push_back(number_or_null(loss));
    Json::Object entry{{"losses", std::move(losses)}, {"parameters", parameter_sums(module_)}};
    write_text(Json(Json::Object{{command_.optimizer, std::move(entry)}}).to_pretty_text() + "\n",
               command_.log);
  }

  void report(double seconds) const {
    if (command_.json) {
      fmt::print("{}\n", Json(Json::Object{{"steps", steps_},
                                           {"first_loss", number_or_null(losses_.front())},
                                           {"last_loss", number_or_null(losses_.back())},
                                           {"seconds", seconds}})
                             .to_text());
      return;
    }
    fmt::print("{} steps in {}: loss {:.6g}, {:.6g} in the end\n", steps_, duration_text(seconds),
               losses_.front(), losses_.back());
    if (!command_.output.empty()) fmt::print("saved {}\n", command_.output);
  }

  const TrainCommand& command_;
  const ExportedProgram& program_;
  GraphModule module_;
  TrainingData data_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  ValueFunction loss_;
  std::map<int64_t, TrainStep> steps_by_rows_;
  std::vector<double> losses_;
  int64_t steps_ = 0;
};

}  // namespace

int train(const TrainCommand& command) {
  require_tensor_file(command.data);
  if (command.optimizer != "sgd" && command.optimizer != "adamw")
    throw UsageError(fmt::format("there is no optimizer '{}'; there are sgd and adamw", command.optimizer));
  for (const auto& [option, value] :
       {std::pair("--lr", command.lr), std::pair("--momentum", command.momentum),
        std::pair("--weight-decay", command.weight_decay.value_or(0))})
    if (!(value >= 0)) throw UsageError(fmt::format("{} is {}; it cannot be negative", option, value));
  for (const std::string* file : {&command.log, &command.output}) require_folder_of(*file);
  if (command.epochs > 0 && command.steps > 0) throw UsageError("--epochs and --steps exclude each other");
  const ExportedProgram program = load_model(command);
  return Training(command, program).run();
}

}  // namespace weft::cli
