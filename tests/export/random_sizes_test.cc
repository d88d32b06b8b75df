// The solver of declared sizes against Z3, on random conditions: what is accepted holds for every size that
// the declarations allow, and declarations that are suggested, once they are made, are accepted.
#include <gtest/gtest.h>
#include <z3++.h>

#include <map>
#include <random>
#include <sstream>

#include "support/tensors.h"
#include "weft/export/export_program.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// --- random programs: branches on the sizes of up to three vectors

struct Condition {
  enum Kind : uint8_t { kLinear, kRemainder, kEqual, kProduct, kQuotient, kMultiple, kDivides, kRatio };
  Kind kind;
  size_t a, b;             // sizes
  int64_t p, q, constant;  // coefficients, a modulus
  bool holds(const std::vector<SymInt>& sizes) const {
    const SymInt &x = sizes[a], &y = sizes[b];
    switch (kind) {
      case kLinear:
        return static_cast<bool>(x * p <= y * q + constant);
      case kRemainder:
        return static_cast<bool>((x + constant) % p == SymInt(0));
      case kEqual:
        return static_cast<bool>(x == y + constant);
      case kProduct:
        return static_cast<bool>(x * y > SymInt(constant));
      case kQuotient:
        return static_cast<bool>(x / p >= SymInt(q));
      case kMultiple:
        return static_cast<bool>(x * p == y);
      case kDivides:
        return static_cast<bool>(x % y == SymInt(0));
      case kRatio:
        return static_cast<bool>(x / p == y);
    }
    return false;
  }
};

struct Branches : nn::Module {
  std::vector<Condition> conditions;
  Tensor forward(const std::vector<Tensor>& vectors) {
    std::vector<SymInt> sizes;
    for (const Tensor& vector : vectors) sizes.push_back(vector.size(0));
    int64_t bias = 0;
    for (const Condition& condition : conditions) bias = 2 * bias + (condition.holds(sizes) ? 1 : 0);
    return vectors[0] + bias;
  }
  WEFT_ARGS(vectors)
};

// What a size is declared to be: a number, or scale * root + offset.
struct Declared {
  std::string root;
  int64_t scale = 1, offset = 0;
  bool is_constant() const { return root.empty(); }
};
struct Sizes {
  std::vector<int64_t> examples;
  std::vector<Declared> sizes;  // of each vector
  std::map<std::string, Dim::Range> roots;

  ExportOptions options() const {
    std::vector<ShapeSpec> specs;
    for (const Declared& size : sizes) {
      if (size.is_constant()) specs.push_back(ShapeSpec::each({size.offset}));
      else specs.push_back(ShapeSpec::each({Dim(size.root, roots.at(size.root)) * size.scale + size.offset}));
    }
    return {.dynamic_shapes = DynamicShapes::by_name({{"vectors", ShapeSpec::list(specs)}})};
  }
};

const char* const kNames[] = {"a", "b", "c"};

struct RandomProgram {
  Branches module;
  Sizes sizes;

  explicit RandomProgram(unsigned seed) {
    std::mt19937 random(seed);
    auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
    const auto count = static_cast<size_t>(1 + below(3));
    for (size_t i = 0; i < count; ++i) {
      sizes.examples.push_back(2 + below(20));
      sizes.sizes.push_back({kNames[i]});
      Dim::Range range;
      if (below(2)) range.min = std::max<int64_t>(2, sizes.examples[i] - below(10));
      if (below(2)) range.max = sizes.examples[i] + below(20);
      sizes.roots[kNames[i]] = range;
    }
    // Often about sizes that are what the condition wants.
    if (count > 1 && below(2)) {
      sizes.examples[1] = below(2) ? sizes.examples[0] : sizes.examples[0] * (1 + below(3)) + below(2);
      sizes.roots[kNames[1]] = {};
    }
    for (int64_t i = 1 + below(4); i > 0; --i) {
      Condition condition{static_cast<Condition::Kind>(below(8)),
                          static_cast<size_t>(below(static_cast<int64_t>(count))),
                          static_cast<size_t>(below(static_cast<int64_t>(count))),
                          1 + below(4),
                          1 + below(4),
                          below(12) - 4};
      if (condition.a == condition.b) condition.b = (condition.a + 1) % count;
      module.conditions.push_back(condition);
    }
  }
  ExportedProgram exported(const Sizes& declared) const {
    ValueList vectors;
    for (const int64_t size : declared.examples) vectors.emplace_back(ones({size}));
    return export_program(module, {Value::list(std::move(vectors))}, declared.options());
  }
};

// --- Z3

// Whether every branch goes the way of the example for all sizes that the declarations allow. Sizes are 2 or
// more unless an example is less.
class Verdict {
 public:
  Verdict(const Branches& module, const Sizes& declared) : solver_(context_) {
    z3::params limits(context_);
    limits.set("timeout", 200u);
    solver_.set(limits);
    std::vector<SymInt> examples;
    for (size_t i = 0; i < declared.sizes.size(); ++i) {
      const Declared& size = declared.sizes[i];
      examples.push_back(declared.examples[i]);
      if (size.is_constant()) {
        sizes_.push_back(number(size.offset));
        continue;
      }
      const z3::expr root = context_.int_const(size.root.c_str());
      const Dim::Range& range = declared.roots.at(size.root);
      const int64_t example = (declared.examples[i] - size.offset) / size.scale;
      solver_.add(root >= number(std::max<int64_t>(range.min, example < 2 ? 0 : 2)));
      if (range.max != Dim::Range().max) solver_.add(root <= number(range.max));
      sizes_.push_back(number(size.scale) * root + number(size.offset));
    }
    for (const Condition& condition : module.conditions) {
      const z3::expr same = condition.holds(examples) ? truth(condition) : !truth(condition);
      solver_.push();
      solver_.add(!same);
      const z3::check_result result = solver_.check();
      unknown += result == z3::unknown;
      proven += result == z3::unsat;
      if (result == z3::sat) {
        std::ostringstream text;
        text << same << " fails at " << solver_.get_model();
        refuted = text.str();
      }
      solver_.pop();
    }
  }
  int proven = 0, unknown = 0;
  std::string refuted;  // by which sizes

 private:
  z3::expr number(int64_t value) { return context_.int_val(value); }
  z3::expr truth(const Condition& condition) {
    const z3::expr x = sizes_[condition.a], y = sizes_[condition.b % sizes_.size()];
    const z3::expr p = number(condition.p), q = number(condition.q), constant = number(condition.constant);
    switch (condition.kind) {
      case Condition::kLinear:
        return x * p <= y * q + constant;
      case Condition::kRemainder:
        return z3::mod(x + constant, p) == 0;
      case Condition::kEqual:
        return x == y + constant;
      case Condition::kProduct:
        return x * y > constant;
      case Condition::kQuotient:
        return x / p >= q;
      case Condition::kMultiple:
        return x * p == y;
      case Condition::kDivides:
        return z3::mod(x, y) == 0;
      case Condition::kRatio:
        return x / p == y;
    }
    return context_.bool_val(false);
  }

  z3::context context_;
  z3::solver solver_;
  std::vector<z3::expr> sizes_;
};

// --- suggested fixes

// "3*_a - 1", "b", "a + 4", "12".
Declared declared_by(const std::string& text) {
  Declared declared;
  std::istringstream words(text);
  std::string term, sign;
  int64_t offset = 0;
  words >> term;
  if (words >> sign >> offset) declared.offset = sign == "-" ? -offset : offset;
  if (const size_t star = term.find('*'); star != term.npos) {
    declared.scale = std::stoll(term.substr(0, star));
    term = term.substr(star + 1);
  }
  if (std::isdigit(static_cast<unsigned char>(term[0]))) declared.offset = std::stoll(term);
  else declared.root = term;
  return declared;
}

// The declarations as the message says to change them.
Sizes with_fixes(Sizes sizes, const std::string& message) {
  std::istringstream lines(message.substr(message.find("Suggested fixes:")));
  std::string line;
  std::getline(lines, line);
  std::map<std::string, Declared> changed;
  while (std::getline(lines, line) && line.starts_with("  ")) {
    const size_t equals = line.find(" = ");
    const std::string name = line.substr(2, equals - 2), value = line.substr(equals + 3);
    if (!value.starts_with("Dim(")) {
      changed[name] = declared_by(value);
      continue;
    }
    Dim::Range range;
    if (const size_t at = value.find("min="); at != value.npos) range.min = std::stoll(value.substr(at + 4));
    if (const size_t at = value.find("max="); at != value.npos) range.max = std::stoll(value.substr(at + 4));
    sizes.roots[name] = range;
  }
  for (Declared& size : sizes.sizes)
    if (auto found = changed.find(size.root); found != changed.end()) size = found->second;
  return sizes;
}

TEST(RandomSizes, AreAcceptedOnlyWhereZ3Agrees) {
  int accepted = 0, refused = 0, proven = 0, unknown = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProgram program(seed);
    Sizes declared = program.sizes;
    try {
      program.exported(declared);
      ++accepted;
    } catch (const ConstraintViolationError& error) {
      ++refused;
      const std::string message = error.message();
      ASSERT_NE(message.find("Suggested fixes:"), message.npos) << message;
      declared = with_fixes(declared, message);
      try {
        program.exported(declared);
      } catch (const Error& again) {
        ADD_FAILURE() << "with the fixes that were suggested:\n" << message << "\n\n" << again.what();
        continue;
      }
    }
    const Verdict verdict(program.module, declared);
    EXPECT_EQ(verdict.refuted, "");
    proven += verdict.proven;
    unknown += verdict.unknown;
  }
  RecordProperty("accepted", accepted);
  RecordProperty("refused", refused);
  RecordProperty("unknown", unknown);
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 300);
  EXPECT_GT(proven, 1500);
  EXPECT_LT(unknown, proven / 20);
}

}  // namespace
}  // namespace weft
