// Programs that PyTorch exported: each is loaded, saved again, run, refused where it must be, and
// differentiated.
//
// Checks that pass are listed in passing.txt, and must go on passing; WEFT_UPDATE_COMPAT=1 writes the list
// anew. A program that calls operators which weft lacks waits for them: it is counted, and named at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "commands.h"
#include "compat/support/case.h"
#include "weft/autograd/autograd.h"
#include "weft/graph/compare.h"
#include "weft/graph/missing_operators.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/ops/functions.h"

namespace weft::compat {
namespace {

const std::string kFolder = WEFT_SOURCE_DIR "/tests/compat";
constexpr const char* kChecks[] = {"load",  "save",       "outputs",    "after", "second", "violation",
                                   "grads", "functional", "decomposed", "text",  "train"};
constexpr const char* kDialects[] = {"pt2", "core"};

// What this process found, for the table at its end.
struct Ledger {
  std::set<std::string> passing;                         // "resnet50 pt2 outputs", as the file lists them
  std::map<std::string, std::pair<int, int>> counts;     // of a check: passed, all
  std::map<std::string, std::set<std::string>> waiting;  // for an operator: cases
  std::set<std::string> passed;

  Ledger() {
    std::ifstream file(kFolder + "/passing.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name, dialect, check;
      words >> name >> dialect;
      while (words >> check) passing.insert(name + " " + dialect + " " + check);
    }
  }
};
Ledger& ledger() {
  static Ledger ledger;
  return ledger;
}

class PrintsTheTable final : public ::testing::Environment {
 public:
  void TearDown() override {
    const Ledger& all = ledger();
    if (all.counts.empty()) return;
    std::cout << "\nprograms of PyTorch: checks passed / all\n";
    for (const char* check : kChecks)
      if (auto found = all.counts.find(check); found != all.counts.end())
        std::cout << "  " << check << ": " << found->second.first << " / " << found->second.second << "\n";
    std::vector<std::pair<size_t, std::string>> most;
    for (const auto& [op, cases] : all.waiting) {
      std::string text = op + " (";
      for (const std::string& name : cases) text += (text.back() == '(' ? "" : ", ") + name;
      most.emplace_back(cases.size(), text + ")");
    }
    std::sort(most.rbegin(), most.rend());
    if (!most.empty()) std::cout << "waited for:\n";
    for (const auto& [count, text] : most) std::cout << "  " << count << "  " << text << "\n";
    std::set<std::string> added;
    std::ranges::set_difference(all.passed, all.passing, std::inserter(added, added.end()));
    if (!added.empty()) std::cout << added.size() << " checks pass that passing.txt does not have\n";
    if (std::getenv("WEFT_UPDATE_COMPAT")) write();
  }

 private:
  static void write() {
    std::ofstream file(kFolder + "/passing.txt");
    for (const std::string& name : case_names(kFolder + "/cases"))
      for (const char* dialect : kDialects) {
        std::string line;
        for (const char* check : kChecks)
          if (ledger().passed.contains(name + " " + dialect + " " + check)) line += std::string(" ") + check;
        if (!line.empty()) file << name << " " << dialect << line << "\n";
      }
  }
};
const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new PrintsTheTable);

class Programs : public ::testing::TestWithParam<std::string> {
 protected:
  Programs() : case_(kFolder + "/cases", GetParam()) {}

  // Runs one check: what it returns is wrong, or nothing. A check of a program that waits is not failed,
  // unless it passed before.
  template <typename Check>
  bool run(const std::string& dialect, const std::string& name, const Check& check) {
    const std::string id = GetParam() + " " + dialect + " " + name;
    auto& [passed, all] = ledger().counts[name];
    ++all;
    std::string wrong;
    try {
      wrong = check();
    } catch (const UnsupportedError& error) {
      note_waiting(error);
      if (ledger().passing.contains(id)) ADD_FAILURE() << id << " passed before, but now: " << error.what();
      return false;
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (wrong.empty()) {
      ++passed;
      ledger().passed.insert(id);
      return true;
    }
    ADD_FAILURE() << id << ": " << wrong;
    return false;
  }

  void note_waiting(const UnsupportedError& error) {
    if (!missing_.empty())
      for (const std::string& op : missing_) ledger().waiting[op].insert(GetParam());
    else ledger().waiting[error.message().substr(0, error.message().find('\n'))].insert(GetParam());
  }

  ExportedProgram program() const { return parse_pt2(bytes_, GetParam()); }

  // The same program after its graph was written as text and read again.
  ExportedProgram read_back(const ExportedProgram& program) const {
    if (!missing_.empty()) unsupported("operators that are not there cannot be read from text either");
    ExportedProgram::Parts parts = program.parts();
    Graph graph = parse_graph(quoted_text(program.graph()));
    const std::string wrong = ::weft::difference(graph, program.graph());
    require(wrong.empty(), "the text means another graph: {}", wrong);
    // What nodes note of their values is no part of the text, and placeholders are checked against it.
    for (Node& node : graph)
      if (const Node* was = program.graph().find(node.name()); was && was->meta_or_null())
        node.meta().value = was->meta_or_null()->value;
    parts.graph_module = GraphModule(parts.graph_module, std::move(graph));
    return ExportedProgram::make(std::move(parts));
  }

  // What a changed program gives, and leaves behind, is what the case says.
  std::string check_run(const ExportedProgram& program) const {
    const ValueList inputs = case_.inputs("");
    NoGrad no_grad;
    const std::string wrong = compare(case_.outputs(""), call(program, inputs));
    return wrong.empty() && case_.tensors("after") ? check_after(program, inputs) : wrong;
  }

  static double largest_gradient(const SafeTensors& gradients) {
    double largest = 0;
    for (const auto& [name, gradient] : gradients) largest = std::max(largest, largest_magnitude(gradient));
    return largest;
  }
  // How many elements of a parameter's gradient are this small.
  int64_t count_below(const std::string& name, double bound) const {
    const Tensor* gradient = case_.tensors("grads")->find(name);
    if (!gradient) return 0;
    return (gradient->to(kFloat64).abs() <= bound).sum().item().to_int();
  }

  // Five steps of each optimizer: the losses, and the sums of the parameters after them.
  std::string check_training(const std::string& optimizer, double lr, const Json& expected) {
    const std::string folder = ::testing::TempDir() + "weft_compat_" + GetParam() + "_";
    std::ofstream(folder + "model.pt2", std::ios::binary) << bytes_;
    save_safetensors(*case_.tensors("inputs"), folder + "inputs.safetensors");
    cli::TrainCommand command;
    command.model = folder + "model.pt2";
    command.data = folder + "inputs.safetensors";
    command.optimizer = optimizer;
    command.lr = lr;
    command.steps = 5;
    command.log = folder + "log.json";
    ::testing::internal::CaptureStdout();
    std::string wrong;
    try {
      cli::train(command);
    } catch (const Error&) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    ::testing::internal::GetCapturedStdout();
    std::stringstream text;
    text << std::ifstream(command.log).rdbuf();
    const Json log = Json::parse(text.str()).at(optimizer);
    const double rtol = std::max(1e-3, case_.tolerance().rtol), atol = case_.tolerance().atol;
    // null is a number that is not finite.
    auto is_near = [&](const Json& expected, const Json& got, double slack) {
      if (expected.is_null() || got.is_null()) return expected.is_null() && got.is_null();
      const double a = expected.as_double();
      return std::abs(a - got.as_double()) <= rtol * std::abs(a) + atol + slack;
    };
    for (size_t i = 0; i < expected.at("losses").size(); ++i) {
      const Json &a = expected.at("losses").at(i), &b = log.at("losses").at(i);
      if (!is_near(a, b, 0))
        return fmt::format("{}: loss {} is {} instead of {}", optimizer, i, b.to_text(), a.to_text());
    }
    const double largest = largest_gradient(*case_.tensors("grads"));
    for (const auto& [name, sums] : expected.at("parameters").as_object()) {
      const Json* got = log.at("parameters").find(name);
      if (!got) return fmt::format("there is no parameter '{}'", name);
      // A sum of both signs is as good as the numbers in it. AdamW moves an element by the learning rate in
      // each step however small its gradient is; where that is rounding alone, either way.
      const Json& scale = sums.at("abs_sum");
      double slack = scale.is_null() ? 0 : rtol * scale.as_double();
      if (optimizer == "adamw") slack += 2 * 5 * lr * static_cast<double>(count_below(name, 1e-6 * largest));
      for (const char* which : {"sum", "abs_sum"})
        if (!is_near(sums.at(which), got->at(which), slack))
          return fmt::format("{}: the {} of '{}' is {} instead of {}", optimizer, which, name,
                             got->at(which).to_text(), sums.at(which).to_text());
    }
    return "";
  }

  static ValueList call(const ExportedProgram& program, const ValueList& leaves) {
    const Value arguments = tree_unflatten(leaves, program.call().arguments);
    Kwargs kwargs;
    for (const auto& [name, value] : arguments.elements()[1].to_dict())
      kwargs.emplace_back(std::string(name.to_string_view()), value);
    return tree_leaves(program.module().call(arguments.elements()[0].elements(), kwargs));
  }

  std::string compare(const ValueList& expected, const ValueList& got) const {
    if (expected.size() != got.size())
      return fmt::format("{} results instead of {}", got.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string wrong;
      if (!expected[i].is_tensor()) {
        if (!(expected[i] == got[i]))
          wrong = fmt::format("{} instead of {}", got[i].to_string(), expected[i].to_string());
      } else if (case_.is_random()) {
        const std::string a = describe(expected[i].tensor_ref()).str(),
                          b = got[i].is_tensor() ? describe(got[i].to_tensor().detach()).str()
                                                 : got[i].to_string();
        if (a != b) wrong = b + " instead of " + a;
      } else {
        wrong = difference(expected[i].tensor_ref(), got[i].as_tensor(), case_.tolerance());
      }
      if (!wrong.empty()) return fmt::format("result {}: {}", i, wrong);
    }
    return "";
  }

  std::string check_after(const ExportedProgram& program, const ValueList& inputs) const {
    for (const auto& [name, expected] : *case_.tensors("after")) {
      Tensor got;
      if (name.starts_with("buffer.")) got = program.tensor(name.substr(7));
      else
        for (size_t i = 0, key = 0; i < inputs.size(); ++i)
          if (inputs[i].is_tensor() && std::to_string(key++) == name.substr(6)) got = inputs[i].to_tensor();
      const std::string wrong = difference(expected, got, case_.tolerance());
      if (!wrong.empty()) return fmt::format("'{}' afterwards: {}", name, wrong);
    }
    return "";
  }

  std::string check_violation() {
    const ExportedProgram program = this->program();
    const std::string expected = case_.notes().at("violation").at("error").as_string();
    try {
      call(program, case_.violating_inputs());
    } catch (const AssertionError& error) {
      const std::string& text = error.message();
      constexpr std::string_view kGuard = "Guard failed: ";
      const size_t wanted = expected.find(kGuard), got = text.find(kGuard);
      if (wanted == expected.npos) {
        // The node that asserts it has another name in each dialect.
        const size_t begin = expected.find(": ") + 2;
        const std::string message = expected.substr(begin, expected.find(" on node ") - begin);
        return text.find(message) != text.npos ? "" : "it was refused with: " + text;
      }
      if (got != text.npos &&
          same_relation(expected.substr(wanted + kGuard.size()), text.substr(got + kGuard.size())))
        return "";
      return "it was refused with: " + text + "\ninstead of: " + expected;
    }
    return "inputs that must be refused were not";
  }

  std::string check_gradients(const std::string& dialect) {
    const ExportedProgram program = this->program();
    const SafeTensors* const own = case_.tensors("grads-" + dialect);
    const SafeTensors& expected = own ? *own : *case_.tensors("grads");
    ValueList inputs = case_.inputs("");
    std::map<std::string, Tensor> leaves;
    size_t key = 0;
    for (Value& input : inputs) {
      if (!input.is_tensor()) continue;
      const std::string name = "input." + std::to_string(key++);
      if (!expected.find(name)) continue;
      Tensor leaf = input.to_tensor();
      leaf.set_requires_grad();
      leaves.emplace(name, leaf);
    }
    for (const auto& [name, tensor] : program.state_dict()) leaves.emplace(name, tensor);
    const ValueList results = call(program, inputs);
    std::vector<Tensor> tensors;
    for (const Value& result : results)
      if (result.is_tensor()) tensors.push_back(result.to_tensor());
    Tensor loss;
    for (const Json& listed : case_.notes().at("loss").as_array()) {
      Tensor output = tensors.at(std::stoul(listed.as_string()));
      if (output.dtype() != kFloat64) output = output.to(kFloat32);
      const Tensor term = (output * output).mean();
      loss = loss.defined()
                 ? (loss.dtype() == term.dtype() ? loss + term : loss.to(kFloat64) + term.to(kFloat64))
                 : term;
    }
    autograd::backward({loss});
    const double largest = largest_gradient(expected);
    for (const auto& [name, gradient] : expected) {
      auto leaf = leaves.find(name);
      if (leaf == leaves.end()) return fmt::format("there is no '{}'", name);
      const Tensor got = leaf->second.grad();
      const bool is_narrow = item_size(gradient.dtype()) == 2;
      const std::string wrong = is_narrow && got.defined() ? difference(gradient, got, case_.tolerance())
                                                           : gradient_difference(gradient, got, largest);
      if (!wrong.empty()) return fmt::format("the gradient of '{}': {}", name, wrong);
    }
    return "";
  }

  void check(const std::string& dialect) {
    bytes_ = case_.archive(dialect);
    missing_.clear();
    const bool loads = run(dialect, "load", [&] {
      for (const MissingOperator& op : missing_operators(program().graph_module()))
        missing_.push_back(op.name);
      return std::string();
    });
    if (!loads) return;
    run(dialect, "save", [&] {
      const std::string saved = pt2_bytes(program());
      const std::string again = pt2_bytes(parse_pt2(saved, GetParam() + " saved"));
      return std::string(saved == again ? "" : "what was saved is saved as other bytes");
    });
    auto run_on = [&](const std::string& suffix) {
      const ExportedProgram program = this->program();
      NoGrad no_grad;
      return compare(case_.outputs(suffix), call(program, case_.inputs(suffix)));
    };
    run(dialect, "outputs", [&] { return run_on(""); });
    if (case_.tensors("inputs-2")) run(dialect, "second", [&] { return run_on("-2"); });
    if (case_.tensors("after"))
      run(dialect, "after", [&] {
        const ExportedProgram program = this->program();
        const ValueList inputs = case_.inputs("");
        NoGrad no_grad;
        call(program, inputs);
        return check_after(program, inputs);
      });
    if (case_.notes().contains("violation")) run(dialect, "violation", [&] { return check_violation(); });
    if (case_.tensors("grads")) run(dialect, "grads", [&] { return check_gradients(dialect); });
    run(dialect, "text", [&] { return check_run(read_back(program())); });
    if (dialect == std::string("core")) return;
    run(dialect, "functional", [&] { return check_run(program().run_decompositions({})); });
    run(dialect, "decomposed", [&] { return check_run(program().run_decompositions()); });
    if (const Json* losses = case_.notes().find("train"))
      run(dialect, "train", [&] {
        const std::string wrong = check_training("sgd", 1e-2, losses->at("sgd"));
        return wrong.empty() ? check_training("adamw", 1e-3, losses->at("adamw")) : wrong;
      });
  }

  Case case_;
  std::string bytes_;
  std::vector<std::string> missing_;
};

TEST_P(Programs, DoWhatPyTorchDoes) {
  for (const char* dialect : kDialects) check(dialect);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Programs, ::testing::ValuesIn(case_names(kFolder + "/cases")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::compat
