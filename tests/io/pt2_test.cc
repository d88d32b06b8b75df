// .pt2 archives as PyTorch wrote them (tests/compat/archives), and what is refused.
#include "weft/io/pt2.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/json.h"
#include "io/pickled_archive.h"
#include "io/pt2_symbols.h"
#include "io/zip.h"
#include "support/archives.h"
#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/base/allocator.h"
#include "weft/base/warning.h"
#include "weft/core/struct.h"
#include "weft/graph/missing_operators.h"
#include "weft/graph/text.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::archive_bytes;
using testing::archive_entries;
using testing::archive_path;
using testing::archive_with;
using testing::archive_with_program;
using testing::ArchiveEntries;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::program_node;
using testing::zipped_archive;

void expect_refused(const std::string& bytes, const char* words) {
  EXPECT_ERROR_TYPE(FormatError, parse_pt2(bytes, "m.pt2").module(), words);
}

TEST(Pt2, ReadsWhatPyTorchWrote) {
  const ExportedProgram program = load_pt2(archive_path("scalar_inputs"));
  EXPECT_TRUE(program.is_training_dialect());
  EXPECT_THAT(program.graph().code(),
              HasSubstr("mul = torch.ops.aten.mul.Tensor(repeat, 0.5);  repeat = None"));
  EXPECT_THAT(program.call().names, ElementsAre("x", "n", "scale", "flip", "bias", "mode", "extra"));
  EXPECT_EQ(program.inputs()[5].constant, Value("mean"));
  const Node* mul = program.graph().find("mul");
  EXPECT_EQ(describe(mul->meta_or_null()->value.to_tensor()).str(), "f32[4, 3]");
  EXPECT_EQ(mul->meta_or_null()->modules.back().class_name, "zoo_programs.Scalars");
  EXPECT_EQ(*mul->meta_or_null()->extra.find("torch_fn"), Value("mul_1;method_descriptor.mul"));
  const Value example = *program.example_inputs();
  EXPECT_EQ(example.elements()[0].elements()[1], Value(2));
  EXPECT_THAT(pt2_models(archive_path("scalar_inputs")), ElementsAre("model"));
}

TEST(Pt2, KeepsAliasesAndUsesWeightsInPlace) {
  const size_t before = allocator_stats().bytes_in_use;
  const ExportedProgram program = load_pt2(archive_path("tied_weights"));
  EXPECT_TRUE(program.tensor("embedding.weight").is_same(program.tensor("out.weight")));
  EXPECT_FALSE(program.tensor("embedding.weight").is_same(program.tensor("block.weight")));
  EXPECT_TRUE(program.tensor("block.bias").requires_grad());
  size_t weights = 0;
  for (const auto& [name, tensor] : program.state_dict()) weights += tensor.storage()->bytes();
  EXPECT_GT(weights, 300u);
  EXPECT_LT(allocator_stats().bytes_in_use - before, 300u);
  EXPECT_EQ(program.module().named_parameters().size(), 3u);
  // Training changes this process's pages only.
  {
    NoGrad no_grad;
    Tensor weight = program.tensor("block.bias");
    weight.fill_(5);
  }
  EXPECT_FALSE(
      equal(load_pt2(archive_path("tied_weights")).tensor("block.bias"), program.tensor("block.bias")));
}

TEST(Pt2, NamedTuplesNeedNoRegistration) {
  const ExportedProgram program = load_pt2(archive_path("nested_structures"));
  const Value example = *program.example_inputs();
  const StructObject* point = struct_in(example.elements()[0].elements()[1]);
  ASSERT_NE(point, nullptr);
  EXPECT_EQ(point->type()->name(), "reference.Point");
  const Value result = program.module().call(example.elements()[0].elements());
  EXPECT_EQ(result.to_dict().at("n"), Value(3));
  EXPECT_EQ(struct_in(result.to_dict().at("point"))->field("y"), Value());
}

TEST(Pt2, IsSavedAsTheSameBytesAgain) {
  for (const char* name : {"scalar_inputs", "tied_weights", "nested_structures"}) {
    const std::string saved = pt2_bytes(load_pt2(archive_path(name)));
    const ExportedProgram again = parse_pt2(saved);
    EXPECT_EQ(pt2_bytes(again), saved) << name;
    EXPECT_EQ(again.to_string(), load_pt2(archive_path(name)).to_string());
    const std::string path = ::testing::TempDir() + "weft_saved.pt2";
    save_pt2(again, path);
    EXPECT_EQ(pt2_bytes(load_pt2(path)), saved);
    std::filesystem::remove(path);
  }
}

TEST(Pt2, OperatorsThatAreMissingAreKeptAndListedWhenRun) {
  const std::string bytes = archive_with_program("scalar_inputs", [](Json& program) {
    program_node(program, 1)["target"] = "torch.ops.mine.scale.default";
    program_node(program, 2)["target"] = "torch.ops.mine.turn.Left";
    program_node(program, 2)["inputs"].as_array()[1]["arg"] = Json::Object{{"as_floats", Json::Array()}};
    // Gives a type, as promote_types does; one without results would have no outputs.
    Json last = program_node(program, 2);
    last["target"] = "torch.ops.mine.type_of.default";
    last["outputs"] = Json::Array{Json::Object{{"as_none", true}}};
    program["graph_module"]["graph"]["nodes"].as_array().push_back(last);
  });
  const ExportedProgram program = parse_pt2(bytes);
  EXPECT_THAT(program.graph().code(), HasSubstr("torch.ops.mine.scale.default(repeat, 0.5)"));
  const std::string saved = pt2_bytes(program);
  EXPECT_EQ(pt2_bytes(parse_pt2(saved)), saved);
  for (const auto& [name, content] : archive_entries(saved)) {
    if (!name.ends_with("model.json")) continue;
    EXPECT_THAT(content, HasSubstr(R"({"name":"dims","arg":{"as_floats":[]},"kind":1})"));
    EXPECT_THAT(content, HasSubstr(R"("outputs":[{"as_none":true}])"));
  }
  const Value example = *program.example_inputs();
  Kwargs kwargs;
  for (const auto& [name, value] : example.elements()[1].to_dict())
    kwargs.emplace_back(name.to_string_view(), value);
  EXPECT_ERROR(program.module().call(example.elements()[0].elements(), kwargs),
               "mine::scale (node mul)\n  mine::turn.Left (node flip_1)\n  mine::type_of (node flip_2)");
}

TEST(Pt2, ContainersOfOtherClassesAreTuples) {
  const std::string bytes = archive_with_program("nested_structures", [](Json& program) {
    Json& signature = program["graph_module"]["module_call_graph"].as_array()[0]["signature"];
    std::string spec = signature["in_spec"].as_string();
    const std::string list = R"("builtins.list", "context": "null")";
    spec.replace(spec.find(list), list.size(), R"("mine.Cache", "context": "{\"layers\": 2}")");
    signature["in_spec"] = spec;
  });
  const ExportedProgram program = parse_pt2(bytes);
  EXPECT_EQ(program.call().arguments.children()[0].children()[2].children()[1].kind(),
            TreeSpec::Kind::kTuple);
  EXPECT_THAT(parse_pt2(pt2_bytes(program)).call().arguments.to_json(),
              HasSubstr(R"("type":"mine.Cache","context":"{\"layers\": 2}")"));
}

// torch.export.register_dataclass: what is None is no part of the tree, but a field of the pickled object.
TEST(Pt2, ExamplesOfDataclassesAreTheirFieldsThatAreNotNone) {
  const std::string bytes =
      archive_with("nested_structures", "sample_inputs/model.pt", [](const std::string& was) {
        const Value example = read_pickled_archive(zip::Archive(FileBytes::copy_of(was, "x")));
        ValueList args = example.elements()[0].elements();
        Dict fields;
        fields.set("x", args[1].elements()[0]);
        fields.set("label", Value());
        fields.set("y", args[1].elements()[1]);
        args[1] = fields;
        return pickled_archive(Value::tuple({Value::tuple(args), example.elements()[1]}));
      });
  const Value example = parse_pt2(bytes).example_inputs().value();
  const Value wanted = load_pt2(archive_path("nested_structures")).example_inputs().value();
  const ValueList leaves = tree_leaves(example), wanted_leaves = tree_leaves(wanted);
  ASSERT_EQ(leaves.size(), wanted_leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_TRUE(equal(leaves[i].to_tensor(), wanted_leaves[i].to_tensor())) << i;
}

// PyTorch writes the symbol of a float that is read from data without assumptions.
TEST(Pt2, SymbolsOfFloatsAreToldByTheirNames) {
  pt2::Symbols symbols(Json::parse(R"({"zuf0": {"min_val": null, "max_val": null}})"));
  const Json zuf0 = Json::Object{
      {"as_expr", Json::Object{{"expr_str", std::string("Symbol('zuf0')")}, {"hint", Json(nullptr)}}}};
  const SymFloat number = symbols.float_of(zuf0, "a number");
  EXPECT_EQ(number.expr()->kind(), sym::Kind::kSymbol);
  EXPECT_EQ(number.expr()->type(), sym::Type::kFloat);
}

TEST(Pt2, DevicesThatAreNotHereBecomeTheCpuWithOneWarning) {
  const std::string bytes = archive_with("scalar_inputs", "models/model.json", [](std::string text) {
    for (size_t at = text.find("\"cpu\""); at != text.npos; at = text.find("\"cpu\"", at))
      text.replace(at, 5, "\"cuda\"");
    return text;
  });
  WarningCapture warnings;
  const ExportedProgram program = parse_pt2(bytes, "m.pt2");
  ASSERT_EQ(warnings.warnings().size(), 1u);
  EXPECT_THAT(warnings.warnings()[0].message,
              HasSubstr("m.pt2: the program was exported for the device 'cuda', which is not here"));
  EXPECT_TRUE(program.graph().find("mul")->meta_or_null()->value.to_tensor().device().is_cpu());
}

TEST(Pt2, RefusesOtherVersionsAndLayouts) {
  expect_refused(archive_with_program("scalar_inputs", [](Json& p) { p["schema_version"]["major"] = 9; }),
                 "m.pt2: models/model.json: version 9.20 of the schema cannot be read, only 8.x; export the "
                 "program again");
  expect_refused(archive_with_program("scalar_inputs", [](Json& p) { p["opset_version"]["aten"] = 11; }),
                 "version 11 of the operators of ATen");
  expect_refused(archive_with("scalar_inputs", "archive_version", [](const std::string&) { return "1"; }),
                 "version '1' of the archive is not known");
  expect_refused(archive_with("scalar_inputs", "archive_format", [](const std::string&) { return "zip"; }),
                 "its format is 'zip', not 'pt2'");
  expect_refused(archive_with("scalar_inputs", "archive_format", [](const std::string&) { return ""; }),
                 "there is no entry 'model/archive_format'");
  expect_refused(archive_with("scalar_inputs", "byteorder", [](const std::string&) { return "big"; }),
                 "byte order 'big' is not supported");
  expect_refused(
      archive_with("tied_weights", "model_weights_config.json", [](const std::string&) { return ""; }),
      "there is no entry for its weights");
  expect_refused(zipped_archive({{"a/serialized_exported_program.json", "{}"}}),
                 "it has the layout of PyTorch 2.7 and older");
  expect_refused(zipped_archive({{"a/data.pkl", "x"}, {"a/version", "3"}}), "m.pt2:");
  ArchiveEntries pickled = archive_entries(archive_bytes("tied_weights"));
  for (auto& [name, content] : pickled)
    if (name.ends_with("model_weights_config.json")) name = "model/data/weights/model.pt";
  expect_refused(zipped_archive(pickled), "its weights are a pickle, as PyTorch 2.8 wrote them");
}

TEST(Pt2, RefusesCustomObjectsByName) {
  const std::string payload =
      R"({"config": {"queue": {"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null}}})";
  EXPECT_ERROR_TYPE(UnsupportedError,
                    parse_pt2(archive_with("tied_weights", "model_constants_config.json",
                                           [&](const std::string&) { return payload; }),
                              "m.pt2"),
                    "m.pt2: 'queue' is a custom object; weft runs no code of classes");
}

TEST(Pt2, SeveralProgramsAreToldApart) {
  ArchiveEntries entries = archive_entries(archive_bytes("scalar_inputs"));
  const size_t count = entries.size();
  for (size_t i = 0; i < count; ++i) {
    auto [name, content] = entries[i];
    for (const char* part : {"models/model", "weights/model", "constants/model", "sample_inputs/model"})
      if (const size_t at = name.find(part); at != name.npos) {
        name.insert(at + std::string(part).size(), "2");
        entries.emplace_back(name, content);
      }
  }
  const std::string bytes = zipped_archive(entries);
  EXPECT_USER_ERROR(parse_pt2(bytes, "m.pt2"),
                    "the archive holds several programs (model, model2); say which one");
  EXPECT_EQ(parse_pt2(bytes, "m.pt2", {.model = "model2"}).inputs().size(), 7u);
  EXPECT_USER_ERROR(parse_pt2(bytes, "m.pt2", {.model = "other"}),
                    "there is no program 'other' in the archive, only model, model2");
}

TEST(Pt2, RefusesProgramsThatDoNotHold) {
  auto refused = [](const std::function<void(Json&)>& change, const char* words) {
    expect_refused(archive_with_program("scalar_inputs", change), words);
  };
  refused([](Json& p) { program_node(p, 1)["inputs"].as_array()[0]["arg"]["as_tensor"]["name"] = "mean"; },
          "argument 'self' of 'mul': there is no value 'mean' before it");
  refused([](Json& p) { program_node(p, 1)["outputs"].as_array()[0]["as_tensor"]["name"] = "repeat"; },
          "two values are called 'repeat'");
  refused([](Json& p) { program_node(p, 1)["inputs"].as_array()[1]["arg"] = Json::Object{{"as_future", 1}}; },
          "an argument cannot be as_future");
  refused(
      [](Json& p) {
        program_node(p, 1)["inputs"].as_array()[1]["arg"] = Json::Object{{"as_int", 1}, {"as_float", 1.0}};
      },
      "expected an object with one key");
  EXPECT_ERROR_TYPE(
      UnsupportedError,
      parse_pt2(archive_with_program("scalar_inputs",
                                     [](Json& p) { program_node(p, 1)["target"] = "torch.ops.mul"; }),
                "m.pt2"),
      "m.pt2: models/model.json: node 'mul' calls 'torch.ops.mul', a function of Python that weft does not "
      "have");
  refused([](Json& p) { p["graph_module"]["signature"]["input_specs"].as_array().pop_back(); },
          "placeholders, its signature");
  refused(
      [](Json& p) {
        p["graph_module"]["graph"]["tensor_values"]["mul"]["sizes"] =
            Json::Array{Json::Object{{"as_int", -1}}};
      },
      "value 'mul'");
  refused(
      [](Json& p) {
        Json size = Json::Object{{"as_expr", Json::Object{{"expr_str", "Symbol('s0'"}, {"hint", nullptr}}}};
        p["graph_module"]["graph"]["tensor_values"]["mul"]["sizes"] = Json::Array{size, size};
      },
      "value 'mul': 'Symbol('s0'' is no expression");
  refused(
      [](Json& p) {
        p["range_constraints"] = Json::Object{{"s0", Json::Object{{"min_val", 4}, {"max_val", 2}}}};
      },
      "range of 's0'");
  refused([](Json& p) { p["graph_module"].as_object() = Json::Object(); },
          "m.pt2: the key \"module_call_graph\" is missing from a JSON object");
}

TEST(Pt2, RefusesWeightsThatReachBeyondTheirFile) {
  auto weights = [](const char* from, const char* to) {
    return archive_with("tied_weights", "model_weights_config.json", [&](std::string text) {
      return text.replace(text.find(from), std::string(from).size(), to);
    });
  };
  expect_refused(
      weights(R"({"as_int": 11})", R"({"as_int": 12})"),
      "'embedding.weight': sizes [12, 6] with strides [6, 1] at offset 0 reach beyond the 66 elements");
  expect_refused(weights(R"("path_name": "weight_0")", R"("path_name": "../weight_0")"), "there is no entry");
  EXPECT_ERROR_TYPE(UnsupportedError, parse_pt2(weights(R"("dtype": 7)", R"("dtype": 29)")),
                    "'embedding.weight': weft has no float8_e4m3fn");
  EXPECT_ERROR_TYPE(UnsupportedError, parse_pt2(weights(R"("layout": 7)", R"("layout": 1)")),
                    "weft has no tensors of layout 1");
}

// Whatever is changed, the file is read or refused.
TEST(Pt2, ATruncatedOrChangedFileNeverCrashes) {
  const std::string bytes = archive_bytes("nested_structures");
  auto try_load = [](const std::string& file) {
    try {
      const ExportedProgram program = parse_pt2(file, "x");
      pt2_bytes(program);
      program.module();
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    }
  };
  for (size_t size = 0; size < bytes.size(); size += 97) try_load(bytes.substr(0, size));
  // Changes inside entries, with checksums that fit.
  const ArchiveEntries entries = archive_entries(bytes);
  std::mt19937 random(1);
  for (int round = 0; round < 600; ++round) {
    ArchiveEntries changed = entries;
    std::string& content = changed[random() % changed.size()].second;
    if (content.empty()) continue;
    for (int i = 0; i < 1 + round % 3; ++i) {
      const size_t at = random() % content.size();
      switch (random() % 4) {
        case 0:
          content[at] = static_cast<char>(random());
          break;
        case 1:
          content[at] = "0123456789-{}[]\",:"[random() % 18];
          break;
        case 2:
          content.erase(at, 1 + random() % 8);
          break;
        default:
          content.insert(at, content.substr(random() % content.size(), random() % 30));
          break;
      }
      if (content.empty()) break;
    }
    try_load(zipped_archive(changed));
  }
}

}  // namespace
}  // namespace weft
