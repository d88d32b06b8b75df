#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/aot/description.h"
#include "weft/base/function_ref.h"

namespace weft::aot {

// One part of what happens around the graph at every call. A step gets the inputs, changes them for the
// steps after it, and their outputs for the steps before it.
class CallStep {
 public:
  using Rest = FunctionRef<ValueList(Args)>;
  virtual ~CallStep() = default;
  virtual ValueList run(Args inputs, const Rest& rest) const = 0;
  // A line that says what it does.
  virtual std::string text() const = 0;
};

// The steps of a call, outermost first.
class CallSteps {
 public:
  void add(std::unique_ptr<CallStep> step) { steps_.push_back(std::move(step)); }
  ValueList run(Args inputs) const { return run_from(0, inputs); }
  std::string text() const;

 private:
  ValueList run_from(size_t first, Args inputs) const;
  std::vector<std::unique_ptr<CallStep>> steps_;
};

// Whether steps were made with symbols, so that replaying them gives this view for one size only.
bool has_symbols(const ViewStep& last);

// After the graph: writes new values into the inputs that it did not write itself.
class CopyBack final : public CallStep {
 public:
  explicit CopyBack(const CallDescription& description) : description_(description) {}
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

 private:
  const CallDescription& description_;
};

// Then: outputs that are inputs, or views of inputs, of bases and of other outputs, are made anew, so that
// they share memory and history with them.
class RegenerateOutputs final : public CallStep {
 public:
  explicit RegenerateOutputs(const CallDescription& description) : description_(description) {}
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

 private:
  const CallDescription& description_;
};

// Last: inputs that the program gave another geometry get it. Gives the outputs of the call alone.
class ChangeMetadata final : public CallStep {
 public:
  explicit ChangeMetadata(const CallDescription& description) : description_(description) {}
  std::string text() const override;
  ValueList run(Args inputs, const Rest& rest) const override;

 private:
  const CallDescription& description_;
};

}  // namespace weft::aot
