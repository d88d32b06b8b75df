// The command line: what the commands take, and what errors end with.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>

#include "commands.h"
#include "help_text.h"
#include "weft/base/parallel.h"

#ifndef WEFT_VERSION
#define WEFT_VERSION "unknown"
#endif

namespace weft::cli {
namespace {

// What the value of an option is, in the help and for completions of shells.
constexpr const char* kFile = "FILE";

void add_common(CLI::App& command, Common& common) {
  command.add_option("MODEL", common.model, "a .pt2 file, as torch.export.save writes it")
      ->required()
      ->type_name(kFile);
  command.add_option("--model", common.program, "which program, where an archive holds several");
  command
      .add_option("--weights", common.weights, "take the weights from this file instead of the model's own")
      ->type_name(kFile);
  command.add_option("--plugin", common.plugins, "a library that defines operators")->type_name(kFile);
  command.add_option("--threads", common.threads, "how many threads run (default: all processors)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", common.json, "print the result as JSON");
}

void add_expectation(CLI::App& command, Expectation& expect) {
  command.add_option("--expect", expect.file, "compare the result with this file")->type_name(kFile);
  command.add_option("--rtol", expect.rtol, "relative tolerance (default: by type, 1e-4 for f32)");
  command.add_option("--atol", expect.atol, "absolute tolerance (default: by type, 1e-5 for f32)");
}

constexpr const char* kFiles =
    "\nFiles of tensors are .safetensors, .npz or .npy. Their keys are \"0\", \"1\", ... for the tensors "
    "among arguments or "
    "results,\nor the names of inputs.";

// Each command, with the function that runs it.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "weft " WEFT_VERSION);
    app_.footer(
        "Exit codes: 0 fine; 1 results differ; 2 usage; 3 the file is bad; 4 something in it is not "
        "supported;\n"
        "5 a check failed while it ran; 70 a fault of weft.\n\nweft COMMAND --help says more.");
    add_run();
    add_grad();
    add_train();
    add_show();
    add_check();
    add_bench();
    add_diff();
    add_convert();
    add_completion();
    add_man();
  }

  int run(int count, char** arguments) {
    try {
      app_.parse(count, arguments);
    } catch (const CLI::Success& success) {
      return app_.exit(success);
    } catch (const CLI::ParseError& error) {
      app_.exit(error);
      return kUsage;
    }
    return chosen_();
  }

 private:
  template <typename Command>
  CLI::App& add(const char* name, const char* about, const char* footer, Command& command,
                int (*run)(const Command&)) {
    CLI::App& sub = *app_.add_subcommand(name, about);
    sub.footer(footer);
    add_common(sub, command);
    sub.callback([this, &command, run] { chosen_ = [&command, run] { return run(command); }; });
    return sub;
  }

  void add_run() {
    CLI::App& sub = add("run", "runs a model", run_footer_.c_str(), run_, cli::run);
    sub.add_option("--inputs", run_.inputs, "the inputs (default: the archive's example)")->type_name(kFile);
    sub.add_option("--output", run_.output, "write the results here")->type_name(kFile);
    sub.add_option("--after", run_.after, "write the buffers and inputs that the call changed here")
        ->type_name(kFile);
    sub.add_option("--engine", run_.engine, "what runs the program (default: eager)")->type_name("eager");
    sub.add_option("--seed", run_.seed, "of random numbers");
    add_expectation(sub, run_.expect);
  }
  void add_grad() {
    CLI::App& sub = add("grad", "gradients of a loss of the outputs", grad_footer_.c_str(), grad_, cli::grad);
    sub.add_option("--inputs", grad_.inputs, "the inputs (default: the archive's example)")->type_name(kFile);
    sub.add_option("--loss", grad_.loss, "mean_square: the sum over floating outputs of mean(o * o); or sum")
        ->type_name("mean_square|sum");
    sub.add_option("--seed", grad_.seed, "of random numbers");
    sub.add_option("--output", grad_.output,
                   "write the gradients here: of parameters by name, of inputs as input.KEY")
        ->type_name(kFile);
    add_expectation(sub, grad_.expect);
  }
  void add_train() {
    CLI::App& sub = add("train", "trains a model", train_footer_.c_str(), train_, cli::train);
    sub.add_option("--data", train_.data, "inputs, and the target, of all examples")
        ->required()
        ->type_name(kFile);
    sub.add_option("--optimizer", train_.optimizer, "the update rule")->required()->type_name("sgd|adamw");
    sub.add_option("--lr", train_.lr, "the learning rate")->required();
    sub.add_option("--momentum", train_.momentum, "of sgd");
    sub.add_option("--weight-decay", train_.weight_decay, "(default: 0 for sgd, 0.01 for adamw)");
    sub.add_option("--loss", train_.loss,
                   "mean_square or sum of the outputs; mse or cross_entropy of the first output and a target")
        ->type_name("mean_square|sum|mse|cross_entropy");
    sub.add_option("--target", train_.target, "the key of the target in the data")->type_name("KEY");
    sub.add_option("--batch", train_.batch, "rows a step (default: all of them)")->check(CLI::PositiveNumber);
    sub.add_option("--epochs", train_.epochs, "how often all data is gone through (default: 1)")
        ->check(CLI::PositiveNumber);
    sub.add_option("--steps", train_.steps, "how many steps, instead")->check(CLI::PositiveNumber);
    sub.add_flag("--shuffle", train_.shuffle, "take rows in another order in each epoch");
    sub.add_option("--seed", train_.seed, "of that order, and of random numbers");
    sub.add_option("--log", train_.log, "write losses and sums of parameters here, as JSON")
        ->type_name(kFile);
    sub.add_option("-o,--output", train_.output, "save the trained model here")->type_name(kFile);
  }
  void add_show() {
    CLI::App& sub = add("show", "prints or draws a model", show_footer_, show_, cli::show);
    sub.add_option("--format", show_.format, "what to print (default: code)")
        ->type_name("code|graph|readable|svg|html|json");
    sub.add_option("-o,--output", show_.output, "write it here")->type_name(kFile);
  }
  void add_check() {
    CLI::App& sub = add("check", "says whether a model can be run, and what is missing", check_footer_,
                        check_, cli::check);
    sub.add_flag("--deep", check_.deep, "read the weights too, for their checksums");
  }
  void add_bench() {
    CLI::App& sub = add("bench", "measures how long a model takes", bench_footer_, bench_, cli::bench);
    sub.add_option("--inputs", bench_.inputs, "the inputs (default: the archive's example)")
        ->type_name(kFile);
    sub.add_option_function<std::vector<std::string>>(
           "--dim", [this](const std::vector<std::string>& given) { set_dims(given); },
           "NAME=N: the size of a dynamic dim, by its symbol")
        ->type_name("NAME=N");
    sub.add_option("--engine", bench_.engine, "what runs the program (default: eager)")->type_name("eager");
    sub.add_option("--seconds", bench_.seconds, "how long to measure (default: 3)")
        ->check(CLI::PositiveNumber);
  }
  void add_diff() {
    CLI::App& sub = add("diff", "runs two models on the same inputs, and names the first node that differs",
                        diff_footer_, diff_, cli::diff);
    sub.add_option("OTHER", diff_.other, "the other model")->required()->type_name(kFile);
    sub.add_option("--inputs", diff_.inputs, "the inputs (default: the first archive's example)")
        ->type_name(kFile);
    sub.add_option("--rtol", diff_.rtol, "relative tolerance (default: by type)");
    sub.add_option("--atol", diff_.atol, "absolute tolerance (default: by type)");
  }
  void add_convert() {
    CLI::App& sub =
        add("convert", "reads one format and writes another", convert_footer_, convert_, cli::convert);
    sub.add_option("-o,--output", convert_.output, "a .pt2, or .safetensors or .npz for the weights alone")
        ->required()
        ->type_name(kFile);
    sub.add_flag("--decompose", convert_.decompose,
                 "write the program in Core ATen operators, as a functional graph");
  }

  void add_completion() {
    CLI::App& sub =
        *app_.add_subcommand("completion", "prints a script with which a shell completes commands");
    sub.add_option("SHELL", shell_, "whose script")->required()->type_name("bash|zsh|fish");
    sub.footer(
        "Examples:\n  source <(weft completion bash)\n"
        "  weft completion fish > ~/.config/fish/completions/weft.fish");
    sub.callback([this] { chosen_ = [this] { return print_completion(); }; });
  }
  void add_man() {
    CLI::App& sub = *app_.add_subcommand("man", "prints the manual page");
    sub.footer("Example:\n  weft man | man -l -");
    sub.callback([this] {
      chosen_ = [this] {
        fmt::print("{}", man_page(help()));
        return kFine;
      };
    });
  }
  int print_completion() const {
    const std::string script = completion_script(help(), shell_);
    if (script.empty())
      throw UsageError(
          fmt::format("there is no completion for '{}'; there is one for bash, zsh and fish", shell_));
    fmt::print("{}", script);
    return kFine;
  }

  static OptionHelp help_of(const CLI::Option& option) {
    OptionHelp help{.names = {}, .value = {}, .about = option.get_description()};
    for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
    if (help.names.empty()) help.names.push_back(option.get_single_name());
    if (option.get_items_expected_max() > 0) help.value = option.get_type_name();
    return help;
  }
  // All that the commands take, as data.
  ProgramHelp help() const {
    ProgramHelp program{WEFT_VERSION, app_.get_description(), app_.get_footer(), {}};
    for (const CLI::App* sub : app_.get_subcommands([](const CLI::App*) { return true; })) {
      CommandHelp command{sub->get_name(), sub->get_description(), sub->get_footer(), {}};
      for (const CLI::Option* option : sub->get_options()) command.options.push_back(help_of(*option));
      program.commands.push_back(std::move(command));
    }
    return program;
  }

  void set_dims(const std::vector<std::string>& given) {
    for (const std::string& text : given) {
      const size_t equals = text.find('=');
      char* end = nullptr;
      const long long size =
          equals == std::string::npos ? -1 : std::strtoll(text.c_str() + equals + 1, &end, 10);
      if (size < 0 || !end || *end != '\0')
        throw CLI::ValidationError("--dim", "'" + text + "' is no NAME=N");
      bench_.dims.emplace_back(text.substr(0, equals), size);
    }
  }

  CLI::App app_{"Runs, differentiates, trains and shows models that PyTorch exported, without PyTorch.",
                "weft"};
  std::function<int()> chosen_;
  RunCommand run_;
  GradCommand grad_;
  TrainCommand train_;
  ShowCommand show_;
  CheckCommand check_;
  BenchCommand bench_;
  DiffCommand diff_;
  ConvertCommand convert_;
  std::string shell_;

  const std::string run_footer_ =
      std::string(
          "Examples:\n  weft run model.pt2                                        # on the archive's "
          "example\n"
          "  weft run model.pt2 --inputs x.npz --output y.safetensors\n"
          "  weft run model.pt2 --inputs x.npz --expect y.npz          # exit code 1 if they differ\n") +
      kFiles;
  const std::string grad_footer_ =
      std::string(
          "Examples:\n  weft grad model.pt2 --inputs x.npz --output grads.safetensors\n"
          "  weft grad model.pt2 --loss sum --expect grads.safetensors\n") +
      kFiles;
  const std::string train_footer_ =
      std::string(
          "Forward, backward and update are one graph, captured before the first step.\n\nExamples:\n"
          "  weft train model.pt2 --data digits.npz --target label --loss cross_entropy --optimizer adamw "
          "\\\n"
          "    --lr 1e-3 --batch 64 --shuffle --epochs 5 -o better.pt2\n"
          "  weft train model.pt2 --data x.npz --optimizer sgd --lr 0.01 --steps 5 --log losses.json\n") +
      kFiles;
  static constexpr const char* show_footer_ =
      "Examples:\n  weft show model.pt2                                       # code, with ATen's operators\n"
      "  weft show model.pt2 --format readable                     # with types, signature and ranges\n"
      "  weft show model.pt2 --format html -o model.html           # a page to search and click through";
  static constexpr const char* check_footer_ =
      "Every operator that weft lacks is named, with the nodes and the source lines that call it (exit code "
      "4).\n\n"
      "Example:\n  weft check model.pt2 --deep";
  static constexpr const char* bench_footer_ =
      "Example:\n  weft bench model.pt2 --dim s77=32 --seconds 10 --threads 1";
  static constexpr const char* diff_footer_ =
      "Nodes are matched by name where the graphs are the same, else by module path and function.\nOf graphs "
      "that compute the same in other ways the results decide.\n\nExample:\n  weft diff model.pt2 "
      "other.pt2 --inputs x.npz";
  static constexpr const char* convert_footer_ =
      "Examples:\n  weft convert model.pt2 -o copy.pt2\n  weft convert model.pt2 --decompose -o core.pt2\n  "
      "weft convert model.pt2 -o weights.safetensors";
};

int report(const char* kind, const Error& error, int code) {
  fmt::print(stderr, "weft: {}{}\n", kind, error.text());
  return code;
}

int main_of(int count, char** arguments) {
  try {
    return CommandLine().run(count, arguments);
  } catch (const UsageError& error) {
    return report("", error, kUsage);
  } catch (const FormatError& error) {
    return report("", error, kBadFile);
  } catch (const AssertionError& error) {
    return report("", error, kCheckFailed);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUnsupported) return report("", error, kUnsupported);
    if (error.kind() == ErrorKind::kUser) return report("", error, kCheckFailed);
    return report("a fault of weft; please report it: ", error, kFault);
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft: a fault of weft; please report it: {}\n", error.what());
    return kFault;
  }
}

}  // namespace
}  // namespace weft::cli

// Ends without destructors of static objects: threads of libraries may be running still, and files are
// closed.
int main(int count, char** arguments) {
  const int code = weft::cli::main_of(count, arguments);
  std::fflush(nullptr);
  std::_Exit(code);
}
