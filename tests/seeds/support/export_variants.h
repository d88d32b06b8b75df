// The ways in which every row of the export suite is run.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "support/expect_error.h"
#include "weft/export/export_program.h"
#include "weft/io/pt2.h"

namespace weft::testing {

enum class ExportVariant : uint8_t { kPlain, kRetraced, kSaved, kPreDispatchDecomposed, kTrainingDecomposed };

inline ExportedProgram saved_and_loaded(const ExportedProgram& program) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("weft_export_" + std::to_string(getpid()) + ".pt2");
  save_pt2(program, path.string());
  ExportedProgram loaded = load_pt2(path.string());
  std::filesystem::remove(path);
  return loaded;
}

// Exports a module in one of the ways.
class Exporter {
 public:
  explicit Exporter(ExportVariant variant) : variant_(variant) {}

  bool is_plain() const { return variant_ == ExportVariant::kPlain; }
  bool is_decomposed() const {
    return variant_ == ExportVariant::kPreDispatchDecomposed || variant_ == ExportVariant::kTrainingDecomposed;
  }
  bool is_retraced() const { return variant_ == ExportVariant::kRetraced; }
  bool is_saved() const { return variant_ == ExportVariant::kSaved; }
  template <typename M>
  ExportedProgram operator()(const M& module, const ValueList& args, const ExportOptions& options = {}) const {
    switch (variant_) {
      case ExportVariant::kPlain:
        return export_program(module, args, options);
      case ExportVariant::kRetraced:
        return export_program(export_program(module, args, options).module(), args, options);
      case ExportVariant::kSaved:
        return saved_and_loaded(export_program(module, args, options));
      case ExportVariant::kPreDispatchDecomposed:
        return export_program(module, args, options).run_decompositions();
      case ExportVariant::kTrainingDecomposed:
        return export_for_training(module, args, options).run_decompositions();
    }
    __builtin_unreachable();
  }

 private:
  ExportVariant variant_;
};

inline void for_each_variant(const std::function<void(const Exporter&)>& body) {
  constexpr std::pair<ExportVariant, const char*> kVariants[] = {
      {ExportVariant::kPlain, "plain"},
      {ExportVariant::kRetraced, "re-traced"},
      {ExportVariant::kSaved, "saved and loaded"},
      {ExportVariant::kPreDispatchDecomposed, "pre-dispatch, then decomposed"},
      {ExportVariant::kTrainingDecomposed, "training IR, then decomposed"},
  };
  for (const auto& [variant, name] : kVariants) {
    SCOPED_TRACE(name);
    try {
      body(Exporter(variant));
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
}

// The result of a call that gives one tensor, or one in a tuple.
inline Tensor only_tensor(const Value& result) { return tree_leaves(result)[0].to_tensor(); }

}  // namespace weft::testing
