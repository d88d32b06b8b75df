#include "aot/symbol_checks.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/core/tensor.h"

namespace weft::aot {

SymbolChecks::SymbolChecks(const ValueList& likes) {
  auto add = [&](size_t input, int64_t dim, const SymInt& value) {
    if (!value.is_symbolic()) return;
    if (!env_) env_ = Ref<ShapeEnv>(value.env());
    reads_.push_back({input, dim, value.expr(), env_->symbol_of(value.expr()) != nullptr});
  };
  for (size_t i = 0; i < likes.size(); ++i) {
    if (likes[i].kind() == Value::Kind::kSymInt) add(i, -1, likes[i].to_sym_int());
    if (!likes[i].is_tensor() || !likes[i].tensor_ref().defined()) continue;
    const SymIntSpan sizes = likes[i].tensor_ref().sizes();
    for (size_t d = 0; d < sizes.size(); ++d) add(i, static_cast<int64_t>(d), sizes[d]);
  }
}

int64_t SymbolChecks::value_of(const Read& read, Args inputs) {
  if (read.dim < 0) return inputs[read.input].to_int();
  return inputs[read.input].tensor_ref().sizes()[static_cast<size_t>(read.dim)].plain();
}

std::string SymbolChecks::text_of(const Read& read) {
  if (read.dim < 0) return fmt::format("input {}", read.input);
  return fmt::format("size({}) of input {}", read.dim, read.input);
}

void SymbolChecks::refuse(const sym::Guard& guard, const FirstReads& first, Args inputs,
                          const std::string& graph) const {
  std::string values;
  for (const sym::Symbol* symbol : env_->free_symbols(guard.condition)) {
    const auto read = first.find(symbol->expr);
    if (read != first.end())
      values += fmt::format("{}{} is {}, {}", values.empty() ? "" : "; ", symbol->expr->to_string(),
                            value_of(*read->second, inputs), text_of(*read->second));
  }
  fail("graph {} relies on {} ({}), which does not hold for these inputs: {}", graph,
       guard.condition->to_string(), guard.where.to_string(), values);
}

void SymbolChecks::check(Args inputs, const std::string& graph) const {
  if (!env_) return;
  sym::Bindings values;
  FirstReads first;
  for (const Read& read : reads_) {
    if (!read.is_symbol) continue;
    const int64_t value = value_of(read, inputs);
    const auto [known, is_new] = values.emplace(read.expr, value);
    if (is_new) first.emplace(read.expr, &read);
    const int64_t expected = std::get<int64_t>(known->second);
    require(value == expected, "graph {} was compiled for one size of {} and {}, but got {} and {}", graph,
            text_of(*first.at(read.expr)), text_of(read), expected, value);
    const sym::ValueRange& range = env_->symbol_of(read.expr)->range;
    require(range.contains(value), "graph {} was compiled for {} in {}, but got {}", graph, text_of(read),
            range.to_string(), value);
  }
  for (const Read& read : reads_) {
    const std::optional<sym::Number> expected =
        read.is_symbol ? std::nullopt : env_->evaluate(read.expr, values);
    require(!expected || std::get<int64_t>(*expected) == value_of(read, inputs),
            "graph {} was compiled for {} = {}, which is {} for these inputs, but got {}", graph,
            text_of(read), read.expr->to_string(), expected ? std::get<int64_t>(*expected) : 0,
            value_of(read, inputs));
  }
  for (const sym::Guard& guard : env_->guards()) {
    const std::optional<sym::Number> holds = env_->evaluate(guard.condition, values);
    if (holds && !std::get<bool>(*holds)) refuse(guard, first, inputs, graph);
  }
}

}  // namespace weft::aot
