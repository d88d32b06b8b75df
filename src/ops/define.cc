#include "weft/ops/define.h"

#include "dispatch/rule_calls.h"
#include "ops/user_operators.h"
#include "weft/base/error.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

void check_results(const Schema& schema, const char* what, const Value& result) {
  const std::vector<Return>& returns = schema.returns;
  if (returns.empty() || schema.is_varret) return;
  if (returns.size() > 1)
    require(result.is_tuple() && result.elements().size() == returns.size(),
            "{}: its {} gave {}, but its schema has {} results", schema.qualified_name(), what,
            result.is_tuple() ? fmt::format("{} results", result.elements().size()) : result.to_string(),
            returns.size());
  for (size_t i = 0; i < returns.size(); ++i) {
    const Value& one = returns.size() > 1 ? result.elements()[i] : result;
    require(is_of(returns[i].type, one), "{}: its {} gave {} ({}) for result {}, which its schema calls {}",
            schema.qualified_name(), what, one.kind_name(), one.to_string(), i, returns[i].type.to_string());
  }
}

// Layers rely on what a schema says of the results; its author hears of one that is something else.
AnyFunction checked(const AnyFunction& f, const char* what, const Schema& schema) {
  if (!f) return {};
  return [f = f.boxed(), what, schema](Args args) {
    Value result = f(args);
    check_results(schema, what, result);
    return result;
  };
}

// A rule over a function that somebody else keeps, whose calls are a program's.
template <typename R, typename A>
Rule<R(A)> rule_of(const std::function<R(A)>& f) {
  if (!f) return {};
  auto run = [](const void* state, A arg) -> R {
    const dispatch::RuleCalls of_program(false);
    return (*static_cast<const std::function<R(A)>*>(state))(arg);
  };
  return Rule<R(A)>(run, &f);
}
Function function_of(const AnyFunction& f) { return {nullptr, rule_of(f.boxed()), nullptr}; }

// Once it is registered it lives for ever: tapes and graphs keep references.
struct UserOperator {
  UserOperator(std::string schema, OperatorRules given)
      : text(std::move(schema)),
        rules(std::move(given)),
        def(definition()),
        op(&def, text.c_str(), OpForm::kFunctional, nullptr) {}
  UserOperator(const UserOperator&) = delete;

  OpDef definition() const {
    return {
        .schema = text.c_str(),
        .traits = rules.traits,
        .meta = function_of(rules.meta),
        .kernel = {.functional = function_of(rules.kernel)},
        .composite = {.functional = function_of(rules.composite)},
        .vjp = {rules.vjp.saves, rule_of(rules.vjp.rule), rules.vjp.differentiable_results},
        .jvp = rule_of(rules.jvp),
        .batch = rule_of(rules.batch),
        .decompose = function_of(rules.decompose),
        .inverse = function_of(rules.inverse),
    };
  }

  const std::string text;
  const OperatorRules rules;
  const OpDef def;
  Operator op;
};

void check_arity(const AnyFunction& f, const char* what, size_t expected, std::string_view schema) {
  require(!f || f.arity() < 0 || f.arity() == static_cast<int>(expected),
          "define_operator: the {} takes {} arguments, but the schema has {}: {}", what, f.arity(), expected,
          schema);
}

}  // namespace

const Operator& define_operator(std::string_view schema, OperatorRules rules) {
  Schema parsed = parse_schema(schema);
  size_t arguments = parsed.arguments.size();
  require(!parsed.ns.empty(), "define_operator: the name needs a namespace, as in \"mine::{}\"", parsed.name);
  require(static_cast<bool>(rules.kernel) != static_cast<bool>(rules.composite),
          "define_operator: {} needs a kernel or a composite, and not both", parsed.name);
  check_arity(rules.kernel, "kernel", arguments, schema);
  check_arity(rules.composite, "composite", arguments, schema);
  check_arity(rules.meta, "meta function", arguments, schema);
  check_arity(rules.decompose, "decomposition", arguments, schema);
  check_arity(rules.inverse, "inverse", arguments + 1, schema);
  rules.kernel = checked(rules.kernel, "kernel", parsed);
  rules.composite = checked(rules.composite, "composite", parsed);
  rules.meta = checked(rules.meta, "meta function", parsed);
  auto made = std::make_unique<UserOperator>(std::string(schema), std::move(rules));
  detail::register_operator(made->op);
  return made.release()->op;
}

}  // namespace weft
