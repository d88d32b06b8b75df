#include "weft/dispatch/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "support/expect_error.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Type::Kind;
using Default = DefaultValue::Kind;

// The type, annotation and default of one argument written as in a schema.
Argument argument(const std::string& text) {
  Schema schema = parse_schema("f(" + text + ") -> ()");
  EXPECT_EQ(schema.to_string(), "f(" + text + ") -> ()");
  return schema.arguments.at(0);
}
DefaultValue default_of(const std::string& text) { return *argument(text).default_value; }

AliasInfo read_alias_of(const std::string& set) { return *argument("Tensor(" + set + ") x").alias; }

TEST(Schema, HasNamesArgumentsAndResults) {
  Schema s = parse_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(s.ns, "aten");
  EXPECT_EQ(s.name, "add");
  EXPECT_EQ(s.overload, "Tensor");
  EXPECT_EQ(s.qualified_name(), "aten::add.Tensor");
  ASSERT_EQ(s.arguments.size(), 3u);
  EXPECT_EQ(s.arguments[1].name, "other");
  EXPECT_TRUE(s.arguments[1].type.is_tensor());
  EXPECT_FALSE(s.arguments[1].kwarg_only);
  EXPECT_FALSE(s.arguments[1].default_value);
  EXPECT_TRUE(s.arguments[2].kwarg_only);
  EXPECT_EQ(s.arguments[2].default_value->as_int, 1);
  ASSERT_EQ(s.returns.size(), 1u);
  EXPECT_TRUE(s.returns[0].type.is_tensor());
  EXPECT_FALSE(s.returns[0].name);
  EXPECT_EQ(s.argument_index("alpha"), 2u);
  EXPECT_EQ(s.argument_index("beta"), std::nullopt);
  EXPECT_EQ(s.find_argument("beta"), nullptr);
}

TEST(Schema, NamesWithoutNamespaceOrOverload) {
  EXPECT_EQ(parse_schema("relu(Tensor self) -> Tensor").qualified_name(), "relu");
  EXPECT_EQ(parse_schema("aten::relu(Tensor self) -> Tensor").qualified_name(), "aten::relu");
  EXPECT_EQ(parse_schema("mine::f.2(Tensor x) -> ()").qualified_name(), "mine::f.2");
}

TEST(Schema, SpacesDoNotMatter) {
  EXPECT_EQ(parse_schema(" f( Tensor ( a! ) [ ] x ,*,int[ 2 ]  y =[ 1,2 ] )->( Tensor,int n )").to_string(),
            "f(Tensor(a!)[] x, *, int[2] y=[1, 2]) -> (Tensor, int n)");
}

TEST(SchemaType, BaseKinds) {
  const std::pair<const char*, Kind> cases[] = {{"Tensor", Kind::kTensor},
                                                {"Scalar", Kind::kScalar},
                                                {"int", Kind::kInt},
                                                {"SymInt", Kind::kSymInt},
                                                {"float", Kind::kFloat},
                                                {"bool", Kind::kBool},
                                                {"str", Kind::kString},
                                                {"complex", Kind::kComplex},
                                                {"ScalarType", Kind::kScalarType},
                                                {"Device", Kind::kDevice},
                                                {"MemoryFormat", Kind::kMemoryFormat},
                                                {"Layout", Kind::kLayout},
                                                {"Storage", Kind::kStorage},
                                                {"Generator", Kind::kGenerator},
                                                {"QScheme", Kind::kQScheme},
                                                {"Dimname", Kind::kDimname},
                                                {"Any", Kind::kAny},
                                                {"NoneType", Kind::kNone},
                                                {"Stream", Kind::kStream},
                                                {"SymBool", Kind::kSymBool},
                                                {"t", Kind::kTypeVar},
                                                {"tVal", Kind::kTypeVar},
                                                {"t2", Kind::kTypeVar},
                                                {"AnyEnumType", Kind::kOpaque},
                                                {"__torch__.torch.classes.rnn.CellParamsBase", Kind::kClass}};
  for (const auto& [text, kind] : cases) {
    EXPECT_EQ(parse_type(text).kind(), kind) << text;
    EXPECT_EQ(parse_type(text).to_string(), text);
  }
}

TEST(SchemaType, ContainersNest) {
  Type list = parse_type("int[2]");
  EXPECT_TRUE(list.is_list());
  EXPECT_EQ(list.list_size(), 2);
  EXPECT_EQ(list.element(), Type(Kind::kInt));

  Type type = parse_type("Tensor?[]?");
  ASSERT_TRUE(type.is_optional());
  ASSERT_TRUE(type.element().is_list());
  EXPECT_EQ(type.element().list_size(), std::nullopt);
  ASSERT_TRUE(type.element().element().is_optional());
  EXPECT_TRUE(type.element().element().element().is_tensor());
  EXPECT_TRUE(type.has_tensor());

  Type dict = parse_type("Dict(str, t)");
  EXPECT_EQ(dict.kind(), Kind::kDict);
  EXPECT_THAT(dict.elements(), ElementsAre(Type(Kind::kString), Type(Kind::kTypeVar, "t")));
  EXPECT_FALSE(dict.has_tensor());

  Type tuples = parse_type("(int, Tensor[])[]");
  EXPECT_EQ(tuples.element().kind(), Kind::kTuple);
  EXPECT_EQ(tuples.element().elements().size(), 2u);
  EXPECT_TRUE(tuples.has_tensor());

  Type future = parse_type("Future(t)");
  EXPECT_EQ(future.kind(), Kind::kWrapper);
  EXPECT_EQ(future.name(), "Future");
  EXPECT_EQ(future.element(), Type(Kind::kTypeVar, "t"));
  for (const char* text :
       {"Tensor?[]?", "Dict(str, t)", "(int, Tensor[])[]", "Future(t)", "int[2]?", "Dict(int, (str, t)[])"})
    EXPECT_EQ(parse_type(text).to_string(), text);
}

TEST(SchemaAlias, ReadsAndWrites) {
  AliasInfo read = *argument("Tensor(a) x").alias;
  EXPECT_THAT(read.before, ElementsAre("a"));
  EXPECT_THAT(read.after, ElementsAre("a"));
  EXPECT_FALSE(read.is_write);
  EXPECT_EQ(read.depth, 0);
  EXPECT_TRUE(argument("Tensor(a!) x").alias->is_write);
  EXPECT_TRUE(argument("Tensor(a!) x").is_written());
  EXPECT_FALSE(argument("Tensor x").alias);
}

TEST(SchemaAlias, SetsArrowsAndWildcards) {
  AliasInfo both = *argument("Tensor(b|a) x").alias;
  EXPECT_THAT(both.before, ElementsAre("b", "a")) << "in the order written";
  AliasInfo arrow = *argument("t(c -> *) x").alias;
  EXPECT_THAT(arrow.before, ElementsAre("c"));
  EXPECT_THAT(arrow.after, ElementsAre("*"));
  EXPECT_FALSE(arrow.is_wildcard());
  AliasInfo written = *argument("Tensor(a! -> a|b) x").alias;
  EXPECT_TRUE(written.is_write);
  EXPECT_THAT(written.after, ElementsAre("a", "b"));
  AliasInfo any = *argument("t(*) x").alias;
  EXPECT_TRUE(any.is_wildcard());
  EXPECT_TRUE(both.may_alias(read_alias_of("a")));
  EXPECT_FALSE(both.may_alias(read_alias_of("c")));
  EXPECT_FALSE(any.may_alias(any)) << "a wildcard names nothing";
}

TEST(SchemaAlias, OfTheListAndOfItsElements) {
  EXPECT_EQ(argument("Tensor(a!)[] x").alias->depth, 1);
  EXPECT_EQ(argument("Tensor[](a!) x").alias->depth, 0);
  EXPECT_EQ(argument("t(a)? x").alias->depth, 1);
  EXPECT_EQ(argument("Tensor(a)?[2] x").alias->depth, 2);
  EXPECT_EQ(argument("Tensor?(a)[] x").alias->depth, 1);
  EXPECT_EQ(argument("Dict(str, t)(a!) x").alias->depth, 0);
  EXPECT_EQ(argument("Tensor(a!)[] x").type, parse_type("Tensor[]"));
}

TEST(SchemaDefault, Scalars) {
  EXPECT_TRUE(default_of("Tensor? x=None").is_none());
  EXPECT_TRUE(default_of("bool x=True").as_bool);
  EXPECT_FALSE(default_of("bool x=False").as_bool);
  EXPECT_EQ(default_of("int x=-100").as_int, -100);
  EXPECT_EQ(default_of("int x=9223372036854775807").as_int, INT64_MAX);
  EXPECT_EQ(default_of("float x=1.0000000000000001e-05").as_float, 1e-5);
  EXPECT_EQ(default_of("float x=1.").as_float, 1.0);
  EXPECT_EQ(default_of("float x=1.").kind, Default::kFloat);
  EXPECT_EQ(default_of("float x=1").kind, Default::kInt);
  EXPECT_EQ(default_of("float x=1").as_float, 1.0);
  EXPECT_EQ(default_of("float x=-inf").as_float, -INFINITY);
  EXPECT_EQ(default_of("float x=inf").as_float, INFINITY);
  EXPECT_TRUE(std::isnan(default_of("float x=nan").as_float));
}

TEST(SchemaDefault, Strings) {
  EXPECT_EQ(default_of("str x=\"linear\"").as_string, "linear");
  EXPECT_EQ(default_of("str x='a, b)'").as_string, "a, b)") << "commas and parentheses are text";
  EXPECT_EQ(default_of(R"(str x="\"\'\\")").as_string, "\"'\\");
  EXPECT_EQ(default_of(R"(str x=" \n\t\f\v")").as_string, " \n\t\f\v");
  EXPECT_EQ(default_of("str x=\"\"").as_string, "");
}

TEST(SchemaDefault, ListsAndWords) {
  DefaultValue list = default_of("int[2] x=[0, -1]");
  EXPECT_EQ(list.kind, Default::kList);
  ASSERT_EQ(list.elements.size(), 2u);
  EXPECT_EQ(list.elements[1].as_int, -1);
  EXPECT_THAT(default_of("int[] x=[]").elements, IsEmpty());
  EXPECT_EQ(default_of("int[2] x=1").as_int, 1) << "one number for every element";
  EXPECT_EQ(default_of("MemoryFormat x=contiguous_format").kind, Default::kWord);
  EXPECT_EQ(default_of("int x=Mean").as_string, "Mean");
  EXPECT_EQ(default_of("ScalarType x=long").as_string, "long");
}

TEST(SchemaReturns, NoneOneNamedAndMany) {
  EXPECT_THAT(parse_schema("f() -> ()").returns, IsEmpty());
  Schema named = parse_schema("f(Tensor x) -> (Tensor values, Tensor(a!) indices)");
  EXPECT_EQ(named.returns[0].name, "values");
  EXPECT_EQ(named.returns[1].name, "indices");
  EXPECT_TRUE(named.returns[1].alias->is_write);
  EXPECT_EQ(parse_schema("f(Tensor x) -> Tensor[] self_out").returns[0].name, "self_out");
  EXPECT_EQ(parse_schema("f(Tensor x) -> (Tensor)").to_string(), "f(Tensor x) -> Tensor");
  Schema pairs = parse_schema("f() -> ((str, t)[])");
  ASSERT_EQ(pairs.returns.size(), 1u);
  EXPECT_EQ(pairs.returns[0].type.element().kind(), Kind::kTuple);
  EXPECT_EQ(pairs.to_string(), "f() -> ((str, t)[])");
}

TEST(SchemaReturns, VariableNumbers) {
  Schema s = parse_schema("prim::ConstantChunk(...) -> ...");
  EXPECT_TRUE(s.is_vararg && s.is_varret);
  EXPECT_THAT(s.arguments, IsEmpty());
  EXPECT_EQ(s.to_string(), "prim::ConstantChunk(...) -> ...");
  EXPECT_EQ(parse_schema("f(str self, ...) -> (int, ...)").to_string(), "f(str self, ...) -> (int, ...)");
}

struct Form {
  const char* schema;
  bool is_mutable, is_view, is_inplace, is_out;
};
TEST(SchemaForm, FollowsFromTheAnnotations) {
  const Form forms[] = {
      {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", false, false, false,
       false},
      {"aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", true, false, true,
       false},
      {"aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", true,
       false, false, true},
      {"aten::t(Tensor(a) self) -> Tensor(a)", false, true, false, false},
      {"aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", false, true,
       false, false},
      {"aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()", true, false, true, false},
      {"aten::unbind_copy.int_out(Tensor self, int dim=0, *, Tensor(a!)[] out) -> ()", true, false, false,
       true},
      {"aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) "
       "max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
       true, false, false, true},
      {"aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
       "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       true, false, false, false},
  };
  for (const Form& form : forms) {
    Schema s = parse_schema(form.schema);
    EXPECT_EQ(s.is_mutable(), form.is_mutable) << form.schema;
    EXPECT_EQ(s.is_view(), form.is_view) << form.schema;
    EXPECT_EQ(s.is_inplace(), form.is_inplace) << form.schema;
    EXPECT_EQ(s.is_out(), form.is_out) << form.schema;
  }
}

TEST(SchemaForm, ResultsKnowTheArgumentTheyAlias) {
  Schema s =
      parse_schema("f(Tensor x, Tensor(a!) y, Tensor(b) z) -> (Tensor(b), Tensor(a!), Tensor, Tensor(*))");
  EXPECT_EQ(s.aliased_argument(0), 2u);
  EXPECT_EQ(s.aliased_argument(1), 1u);
  EXPECT_EQ(s.aliased_argument(2), std::nullopt);
  EXPECT_EQ(s.aliased_argument(3), std::nullopt);
}

}  // namespace
}  // namespace weft
