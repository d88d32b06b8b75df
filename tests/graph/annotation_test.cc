#include "weft/graph/annotation.h"

#include <gtest/gtest.h>

#include "weft/graph/compare.h"
#include "weft/graph/parse.h"
#include "weft/graph/script_view.h"
#include "weft/graph/text.h"

namespace weft {
namespace {

using TypeKind = Type::Kind;

TEST(Annotation, IsPyTorchsSpelling) {
  const Type tensor(TypeKind::kTensor), number(TypeKind::kInt);
  EXPECT_EQ(annotation(tensor), "torch.Tensor");
  EXPECT_EQ(annotation(Type::list(number, 2)), "typing.List[int]");
  EXPECT_EQ(annotation(Type::dict(Type(TypeKind::kString), Type::optional(tensor))),
            "typing.Dict[str, typing.Optional[torch.Tensor]]");
  EXPECT_EQ(annotation(Type::tuple({})), "typing.Tuple[()]");
  EXPECT_EQ(annotation(Type::tuple({number, Type::wrapper("Future", tensor)})),
            "typing.Tuple[int, Future[torch.Tensor]]");
  EXPECT_EQ(annotation(Type(TypeKind::kClass, "__torch__.Net")), "__torch__.Net");
}

// Every kind reads back, alone and inside of others.
TEST(Annotation, ReadsBack) {
  std::vector<Type> types;
  for (int kind = 0; kind <= static_cast<int>(TypeKind::kNone); ++kind)
    types.emplace_back(static_cast<TypeKind>(kind));
  types.emplace_back(TypeKind::kClass, "my.module.Class");
  for (size_t i = 0, own = types.size(); i < own; ++i) {
    const Type type = types[i];
    types.push_back(Type::list(type));
    types.push_back(Type::optional(Type::list(type)));
    types.push_back(Type::tuple({type, types[0], Type::tuple({})}));
    types.push_back(Type::dict(Type(TypeKind::kString), Type::dict(type, Type::list(type))));
    types.push_back(Type::wrapper("RRef", type));
  }
  for (const Type& type : types) EXPECT_EQ(parse_annotation(annotation(type)), type) << annotation(type);
}

TEST(Annotation, OtherSpellingsMeanTheSame) {
  const Type tensor(TypeKind::kTensor);
  EXPECT_EQ(parse_annotation("Tensor"), tensor);
  EXPECT_EQ(parse_annotation("Optional[Tensor]"), Type::optional(tensor));
  EXPECT_EQ(parse_annotation("list[ int ]"), Type::list(Type(TypeKind::kInt)));
  EXPECT_EQ(parse_annotation("Dict[str,Tuple[Tensor,int]]"),
            Type::dict(Type(TypeKind::kString), Type::tuple({tensor, Type(TypeKind::kInt)})));
  EXPECT_EQ(parse_annotation("None"), Type(TypeKind::kNone));
}

TEST(Annotation, WhatIsNoTypeKeepsItsText) {
  std::string deep = "int";
  for (int i = 0; i < 1000; ++i) deep = "List[" + deep + "]";
  for (const std::string& text :
       {std::string("a = b"), std::string("</svg>"), std::string("int | None"), std::string("Foo[int]"),
        std::string("List[int, str]"), std::string("List[]"), std::string("List[int"),
        std::string("Dict[int]"), std::string(""), deep}) {
    const Type type = parse_annotation(text);
    EXPECT_EQ(type.kind(), TypeKind::kOpaque) << text;
    EXPECT_EQ(annotation(type), text);
  }
}

TEST(Annotation, TypesOfNodesReadBackFromTexts) {
  Graph graph;
  Node& x = graph.placeholder("x");
  x.meta().type = Type::dict(Type(TypeKind::kString), Type(TypeKind::kTensor));
  Node& item = graph.call_function("operator.getitem", {value_of(x), "a"});
  item.meta().type = Type(TypeKind::kTensor);
  graph.output(value_of(item)).meta().type = Type(TypeKind::kTensor);
  const CompareOptions all{.notes = true};
  EXPECT_EQ(difference(parse_code(graph.code()), graph, all), "");
  EXPECT_EQ(difference(parse_graph(quoted_text(graph)), graph, all), "");
  EXPECT_EQ(difference(graph.copy(), graph, all), "");
  Graph other = graph.copy();
  other.find("getitem")->meta().type = Type(TypeKind::kInt);
  EXPECT_EQ(difference(graph, other, all), "node 1 'getitem': type: torch.Tensor against int");
  EXPECT_EQ(difference(graph, other), "");
}

TEST(Annotation, TextsKeepTheirSpelling) {
  const char* code = "\n\n\ndef forward(self, x : Optional[Tensor] = None) -> Tensor:\n    return x\n    ";
  Graph graph = parse_code(code);
  EXPECT_EQ(graph.code(), code);
  EXPECT_EQ(graph.copy().code(), code);
  EXPECT_EQ(parse_graph(quoted_text(graph)).code(), code);
  Node& x = *graph.find("x");
  EXPECT_EQ(x.meta().type, Type::optional(Type(TypeKind::kTensor)));
  x.meta().type = Type(TypeKind::kInt);
  EXPECT_EQ(type_text(x), "int");
}

TEST(Annotation, TheScriptViewHasDeclaredTypes) {
  Graph graph;
  Node &x = graph.placeholder("x"), &n = graph.placeholder("n");
  x.meta().type = parse_annotation("Dict[str, Tensor]");
  n.meta().type = parse_annotation("Optional[int]");
  graph.output(Value::tuple({value_of(x), value_of(n)}));
  EXPECT_EQ(script_text(graph).substr(0, 47), "graph(%x : Dict(str, Tensor),\n      %n : int?):");
}

}  // namespace
}  // namespace weft
