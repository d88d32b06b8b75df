#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/dispatch/op_def.h"
#include "weft/dispatch/schema.h"

namespace weft {

enum class OpForm : uint8_t { kFunctional, kInplace, kOut };

namespace detail {
struct RelativesAccess;
}

// One overload as the dispatcher sees it: a form of an OpDef, with its parsed schema.
class Operator {
 public:
  constexpr Operator(const OpDef* def, const char* text, OpForm form, const std::type_info* signature)
      : def_(def), text_(text), form_(form), signature_(signature) {}
  Operator(const Operator&) = delete;

  const OpDef& def() const noexcept { return *def_; }
  OpForm form() const noexcept { return form_; }
  // "aten::add.Tensor"
  std::string_view name() const;
  const char* schema_text() const noexcept { return text_; }
  const Schema& schema() const { return info().schema; }
  bool has(Traits trait) const { return def_->traits & trait; }

  // The kernel of this form, or where the operator is composite its composition.
  const Function& kernel() const noexcept { return of_form(is_composite() ? def_->composite : def_->kernel); }
  bool is_composite() const noexcept { return static_cast<bool>(def_->composite.functional); }
  // The C++ type that the schema gives the typed function; null for users' operators.
  const std::type_info* signature() const noexcept { return signature_; }
  // The functional overload that an in-place or out= form derives from; itself for a functional one.
  const Operator& functional() const {
    return form_ == OpForm::kFunctional ? *this : *relative(Relative::kFunctional);
  }
  // Operators that are known by their names to belong to this one.
  enum class Relative : uint8_t {
    kFunctional,          // of an in-place or out= form
    kForTensors,          // the overload "Tensor", or that without a name
    kForNumbers,          // the overload "Scalar"
    kWithWrittenResults,  // "..._functional": gives what this one writes, after what this one gives
  };
  // Null where there is none. Looked up once: afterwards it costs a load.
  const Operator* relative(Relative which) const {
    const Operator* known = relatives_[static_cast<size_t>(which)].load(std::memory_order_acquire);
    return known ? (known == this ? nullptr : known) : find_relative(which);
  }

  // Facts read off the schema once.
  struct Info {
    Schema schema;
    bool is_mutable = false;
    bool is_view = false;
    std::vector<uint8_t> written;         // 1 for each argument that is written to
    std::vector<int16_t> result_aliases;  // the argument that result i aliases, or -1
    std::vector<uint8_t> is_tensor;       // 1 for Tensor and Tensor?, 2 for lists of them
    std::vector<Value> defaults;          // None where there is none
  };
  const Info& info() const {
    const Info* known = info_.load(std::memory_order_acquire);
    return known ? *known : parse();
  }

 private:
  const Info& parse() const;
  const Operator* find_relative(Relative which) const;
  std::string name_of(Relative which) const;
  friend struct detail::RelativesAccess;
  const Function& of_form(const KernelSet& set) const noexcept {
    switch (form_) {
      case OpForm::kFunctional:
        return set.functional;
      case OpForm::kInplace:
        return set.inplace;
      case OpForm::kOut:
        return set.out;
    }
    __builtin_unreachable();
  }

  const OpDef* def_;
  const char* text_;
  OpForm form_;
  const std::type_info* signature_;
  mutable std::atomic<const Info*> info_{nullptr};
  // By Relative: null is not looked up yet, the operator itself says that there is none.
  mutable std::array<std::atomic<const Operator*>, 4> relatives_{};
};

// The operator of this qualified name ("aten::add.Tensor"); null when there is none.
const Operator* find_operator(std::string_view name);
// The same, with an error that suggests near names.
const Operator& operator_named(std::string_view name);
// Every operator, in the order of registration: weft's own, then users'.
std::vector<const Operator*> all_operators();

// Calls `op` through every active layer. Missing trailing arguments take their defaults.
Value call(const Operator& op, Args args);
Value call(const Operator& op, std::initializer_list<Value> args);
Value call(std::string_view name, std::initializer_list<Value> args);

}  // namespace weft
