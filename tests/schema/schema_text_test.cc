// All of ATen's schemas, and texts that are none.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/expect_error.h"
#include "weft/dispatch/schema.h"

namespace weft {
namespace {

// Every schema that PyTorch 2.13 registers in the namespaces aten, prim and prims, as PyTorch prints it.
const std::vector<std::string>& aten_schemas() {
  static const std::vector<std::string> lines = [] {
    std::ifstream file(WEFT_SOURCE_DIR "/tests/data/aten_schemas.txt");
    std::vector<std::string> read;
    for (std::string line; std::getline(file, line);) read.push_back(line);
    return read;
  }();
  return lines;
}

TEST(AtenSchemas, AllPrintBackToTheSameText) {
  ASSERT_EQ(aten_schemas().size(), 4008u);
  for (const std::string& line : aten_schemas()) {
    Schema schema = parse_schema(line);
    ASSERT_EQ(schema.to_string(), line);
    ASSERT_EQ(line.substr(0, line.find('(')), schema.qualified_name());
  }
}

// The counts are those of PyTorch's own is_mutable, and of its out and view schemas.
TEST(AtenSchemas, FormsAreThoseOfPyTorch) {
  int mutables = 0, views = 0, outs = 0, inplace = 0;
  for (const std::string& line : aten_schemas()) {
    Schema schema = parse_schema(line);
    mutables += schema.is_mutable();
    views += schema.is_view();
    outs += schema.is_out();
    inplace += schema.is_inplace();
    EXPECT_TRUE(!schema.is_inplace() || schema.is_mutable()) << line;
    EXPECT_FALSE(schema.is_inplace() && schema.is_out()) << line;
  }
  EXPECT_EQ(mutables, 1546);
  EXPECT_EQ(views, 175);
  EXPECT_EQ(outs, 1107);
  EXPECT_EQ(inplace, 430);
}

struct Malformed {
  const char *text, *words;
};
TEST(SchemaErrors, NameTheColumnAndWhatWasExpected) {
  const Malformed cases[] = {
      {"", "expected the operator's name, found the end of the text at column 1"},
      {"aten::", "expected the operator's name after '::', found the end of the text at column 7"},
      {"1add(Tensor x) -> Tensor", "expected the operator's name, found '1' at column 1"},
      {"aten::add", "expected '(' after the operator's name, found the end of the text at column 10"},
      {"aten::add.(Tensor x) -> Tensor", "expected an overload name after '.', found '(' at column 11"},
      {"aten::add.a.b(Tensor x) -> Tensor", "expected '(' after the operator's name, found '.' at column 12"},
      {"aten::add(Tensor) -> Tensor", "expected an argument name, found ')' at column 17"},
      {"aten::add(Tensor x", "expected ')' or ',' after an argument, found the end of the text at column 19"},
      {"aten::add(Tensor x y) -> Tensor", "expected ')' or ',' after an argument, found 'y' at column 20"},
      {"aten::add(Tensor x,) -> Tensor", "expected a type, found ')' at column 20"},
      {"aten::add(Tensor x)", "expected '->' before the results, found the end of the text at column 20"},
      {"aten::add(Tensor x) -> ", "expected a type, found the end of the text"},
      {"aten::add(Tensor x) -> Tensor)", "expected the end of the schema, found ')' at column 30"},
      {"aten::add(Tensor x) -> (Tensor",
       "expected ')' or ',' after a result, found the end of the text at column 31"},
      {"aten::add(Tensr x) -> Tensor", "unknown type 'Tensr'; expected one such as Tensor, Scalar, int"},
      {"aten::add(tensor x) -> Tensor", "unknown type 'tensor'"},
      {"aten::add(Tensor x, Tensor x) -> Tensor", "a second argument named 'x' at column 28"},
      {"aten::add(Tensor x, *) -> Tensor",
       "expected ',' and keyword-only arguments after '*', found ')' at column 22"},
      {"aten::add(*, Tensor x, *, int y) -> Tensor", "a second '*' among the arguments at column 24"},
      {"aten::add(..., Tensor x) -> Tensor", "something after '...'; it must come last, at column 16"},
      {"aten::add() -> (..., Tensor)", "a result after '...'; it must come last, at column 22"},
      {"aten::add(Tensor(a x) -> Tensor", "expected ')' to end the alias annotation, found 'x' at column 20"},
      {"aten::add(Tensor() x) -> Tensor",
       "expected the name of an alias set, or '*', found ')' at column 18"},
      {"aten::add(Tensor(!) x) -> Tensor",
       "expected the name of an alias set, or '*', found '!' at column 18"},
      {"aten::add(Tensor(a)(b) x) -> Tensor", "a second alias annotation of one type at column 20"},
      {"aten::add(Dict(str, Tensor(a)) x) -> Tensor", "an alias annotation inside another type at column 21"},
      {"aten::add(int[ x) -> Tensor", "expected ']' or a list size, found 'x' at column 16"},
      {"aten::add(int[-2] x) -> Tensor", "expected ']' or a list size, found '-' at column 15"},
      {"aten::add(int[2 x) -> Tensor", "expected ']' after the list size, found 'x' at column 17"},
      {"aten::add(Dict(str) x) -> Tensor", "Dict has 1 types; expected a key and a value, at column 11"},
      {"aten::add(Dict x) -> Tensor", "expected '(' after Dict, found 'x' at column 16"},
      {"aten::add(Future() x) -> Tensor", "expected a type, found ')' at column 18"},
      {"aten::add(int x=) -> Tensor", "expected a default value, found ')' at column 17"},
      {"aten::add(int x=-) -> Tensor", "expected a number, found '-' at column 17"},
      {"aten::add(float x=1.2.3) -> Tensor", "expected a number, found '1' at column 19"},
      {"aten::add(int x=99999999999999999999) -> Tensor", "the number 99999999999999999999 is out of range"},
      {"aten::add(str x=\"abc) -> Tensor", "a string without its closing quote at column 17"},
      {"aten::add(str x=\"\\q\") -> Tensor", "unknown escape '\\q' in a string at column 19"},
      {"aten::add(int[] x=[1, 2) -> Tensor", "expected ']' or ',' in a list, found ')' at column 24"},
      {"aten::add(str x=5) -> Tensor", "the default 5 does not fit the type str at column 17"},
      {"aten::add(bool x=[1]) -> Tensor", "the default [1] does not fit the type bool at column 18"},
      {"aten::add(int x=None) -> Tensor", "the default None does not fit the type int at column 17"},
      {"aten::add(int? x=\"a\") -> Tensor", "the default \"a\" does not fit the type int? at column 18"},
  };
  for (const Malformed& c : cases) EXPECT_ERROR_TYPE(FormatError, parse_schema(c.text), c.words) << c.text;
}

TEST(SchemaErrors, ShowTheTextAndPointAtTheColumn) {
  EXPECT_ERROR_TYPE(FormatError, parse_schema("f(Tensor) -> ()"),
                    "not a schema: expected an argument name, found ')' at column 9\n"
                    "  f(Tensor) -> ()\n"
                    "          ^");
}

TEST(SchemaErrors, NestingIsBounded) {
  std::string tuples = std::string(100'000, '(') + "int" + std::string(100'000, ')');
  EXPECT_ERROR_TYPE(FormatError, parse_type(tuples), "types nested more than 32 deep");
  std::string lists = "int";
  for (int i = 0; i < 1000; ++i) lists += "[]";
  EXPECT_ERROR_TYPE(FormatError, parse_type(lists), "types nested more than 32 deep");
  std::string value = "f(int[] x=" + std::string(1000, '[') + ") -> ()";
  EXPECT_ERROR_TYPE(FormatError, parse_schema(value), "lists nested more than 32 deep");
}

// A damaged schema is refused as a FormatError, or is another schema that prints and reads back.
TEST(SchemaErrors, DamagedTextNeverDoesAnythingElse) {
  std::mt19937 random(5);
  const std::string characters = "()[]?!*|=.,->\"' aTt1:_";
  int refused = 0;
  for (const std::string& line : aten_schemas()) {
    std::string damaged = line;
    size_t offset = random() % damaged.size();
    switch (random() % 3) {
      case 0:
        damaged.erase(offset, 1 + random() % 3);
        break;
      case 1:
        damaged.insert(offset, 1, characters[random() % characters.size()]);
        break;
      default:
        damaged[offset] = characters[random() % characters.size()];
    }
    try {
      std::string printed = parse_schema(damaged).to_string();
      EXPECT_EQ(parse_schema(printed).to_string(), printed) << damaged;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace weft
