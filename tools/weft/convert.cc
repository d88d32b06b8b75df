#include <filesystem>

#include "commands.h"
#include "model_file.h"
#include "tensor_files.h"
#include "weft/io/pt2.h"

namespace weft::cli {

int convert(const ConvertCommand& command) {
  const std::string ending = std::filesystem::path(command.output).extension().string();
  if (ending != ".pt2" && ending != ".safetensors" && ending != ".npz")
    throw UsageError(fmt::format(
        "'{}': weft writes programs as .pt2, and their weights as .safetensors or .npz", command.output));
  if (command.decompose && ending != ".pt2") throw UsageError("--decompose is for programs: write a .pt2");
  require_folder_of(command.output);
  ExportedProgram program = load_model(command);
  if (command.decompose) program = program.run_decompositions();
  if (ending == ".pt2") save_pt2(program, command.output);
  else write_tensors(program.state_dict(), command.output);
  return kFine;
}

}  // namespace weft::cli
