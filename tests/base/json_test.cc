#include "base/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/expect_error.h"

namespace weft {
namespace {

TEST(Json, ReadsEveryKindOfValue) {
  Json value = Json::parse(R"({"a": [1, -2.5, "x\u00e9\n", true, false, null], "b": {}})");
  const Json& list = value.at("a");
  EXPECT_EQ(list.size(), 6u);
  EXPECT_EQ(list.at(0).as_int(), 1);
  EXPECT_EQ(list.at(1).as_double(), -2.5);
  EXPECT_EQ(list.at(2).as_string(), "x\xc3\xa9\n");
  EXPECT_TRUE(list.at(3).as_bool());
  EXPECT_FALSE(list.at(4).as_bool());
  EXPECT_TRUE(list.at(5).is_null());
  EXPECT_TRUE(value.at("b").as_object().empty());
  EXPECT_EQ(Json::parse(" 7 ").as_int(), 7);
}

TEST(Json, IntegersAndDoublesStayApart) {
  EXPECT_TRUE(Json::parse("1").is_int());
  EXPECT_TRUE(Json::parse("1.0").is_double());
  EXPECT_TRUE(Json::parse("1e2").is_double());
  EXPECT_FALSE(Json(1) == Json(1.0));
  EXPECT_EQ(Json(1.0).to_text(), "1.0");
  EXPECT_EQ(Json(1).as_double(), 1.0);
  EXPECT_EQ(Json::parse("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json::parse("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
}

TEST(Json, ObjectsKeepTheOrderOfInsertion) {
  std::string text = R"({"z":1,"a":2,"m":3})";
  EXPECT_EQ(Json::parse(text).to_text(), text);
  Json built;
  built["z"] = 1;
  built["a"] = 2;
  built["m"] = 3;
  EXPECT_EQ(built, Json::parse(text));
  EXPECT_FALSE(Json::parse(R"({"a":1,"b":2})") == Json::parse(R"({"b":2,"a":1})"));
}

TEST(Json, LargeObjectsFindTheirMembers) {
  Json value;
  for (int i = 0; i < 1000; ++i) value["key" + std::to_string(i)] = i;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(value.at("key" + std::to_string(i)).as_int(), i);
  EXPECT_FALSE(value.contains("key1000"));
  EXPECT_EQ(Json::parse(value.to_text()), value);
  Json copy = value;
  copy["key7"] = "changed";
  EXPECT_EQ(copy.at("key7").as_string(), "changed");
  EXPECT_EQ(value.at("key7").as_int(), 7);
}

TEST(Json, DoublesRoundTripBitForBit) {
  std::mt19937_64 random(1);
  std::vector<double> values = {0.0, -0.0, 0.1, 1e300, 5e-324, std::numeric_limits<double>::max(), 1.0 / 3};
  while (values.size() < 20'000) {
    double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) values.push_back(x);
  }
  for (double x : values) {
    std::string text = Json(x).to_text();
    Json back = Json::parse(text);
    ASSERT_TRUE(back.is_double()) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>(back.as_double()), std::bit_cast<uint64_t>(x)) << text;
  }
}

Json random_json(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<int64_t>(random()) - (int64_t{1} << 31);
    case 3:
      return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
    case 4:
    case 5: {
      std::string text;
      for (unsigned n = random() % 10; n > 0; --n) text += static_cast<char>(random() % 128);
      return text + "\xe2\x82\xac";
    }
    case 6: {
      Json::Array array;
      for (unsigned n = random() % 5; n > 0; --n) array.push_back(random_json(random, depth - 1));
      return array;
    }
    default: {
      Json::Object object;
      for (unsigned n = random() % 5; n > 0; --n)
        object.insert(std::to_string(random() % 100), random_json(random, depth - 1));
      return object;
    }
  }
}

TEST(Json, AnyValueRoundTrips) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    Json value = random_json(random, 5);
    ASSERT_EQ(Json::parse(value.to_text()), value);
    ASSERT_EQ(Json::parse(value.to_pretty_text()), value);
  }
}

TEST(Json, PrettyTextIsIndented) {
  Json value = Json::Object{{"a", Json::Array{1, 2}}, {"b", Json::Object{}}, {"c", Json::Array{}}};
  EXPECT_EQ(value.to_pretty_text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": []\n}");
  EXPECT_EQ(value.to_text(), R"({"a":[1,2],"b":{},"c":[]})");
}

TEST(Json, RefusesBadTextWithLineAndColumn) {
  struct Case {
    const char *text, *words;
  };
  const Case cases[] = {
      {"", "config.json is not valid JSON at line 1, column 1: "},
      {"{", "line 1, column 1: syntax error while parsing object key - unexpected end of input"},
      {"[1,\n 2,\n x]", "config.json is not valid JSON at line 3, column 2: "},
      {"[1, 2,]", "line 1, column 7: "},
      {"{\"a\": 1,}", "line 1, column 9: "},
      {"{\"a\" 1}", "expected ':'"},
      {"{a: 1}", "expected string literal"},
      {"[1] [2]", "expected end of input"},
      {"// comment\n1", "line 1, column 1: "},
      {"NaN", "line 1, column 1: "},
      {"01", "line 1, column 2: "},
      {"1e999", "number overflow"},
      {"\"a\nb\"", "control character U+000A (LF) must be escaped"},
      {"\"\xff\"", "ill-formed UTF-8 byte"},
      {"\"\\ud800\"", "surrogate"},
      {"\"abc", "missing closing quote"},
      {"'a'", "line 1, column 1: "},
      {"tru", "invalid literal"},
      {"[1 2]", "expected ']'"},
      {"{\"a\": 1,\n \"a\": 2}", "line 2, column 4: the key \"a\" comes twice in one object"},
      {"9223372036854775808", "the integer 9223372036854775808 does not fit 64 bits"},
      {"[-9223372036854775809 ]", "the integer -9223372036854775809 does not fit 64 bits"},
      {"123456789012345678901234567890", "the integer 123456789012345678901234567890 does not fit 64 bits"},
  };
  for (const Case& c : cases)
    EXPECT_ERROR_TYPE(FormatError, Json::parse(c.text, "config.json"), c.words) << c.text;
}

TEST(Json, RefusesZeroBytes) {
  using namespace std::string_view_literals;
  EXPECT_ERROR_TYPE(FormatError, Json::parse("1\0 2"sv), "line 1, column 2: a zero byte");
  EXPECT_EQ(Json::parse(R"("a\u0000b")").as_string(), "a\0b"sv);
}

TEST(Json, NestingIsBounded) {
  auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(Json::parse(nested(512)).to_text(), nested(512));
  EXPECT_ERROR_TYPE(FormatError, Json::parse(nested(513)),
                    "column 513: values are nested more than 512 deep");
  EXPECT_ERROR_TYPE(FormatError, Json::parse(nested(4), "x", {.max_depth = 3}), "nested more than 3 deep");
  EXPECT_ERROR_TYPE(FormatError, Json::parse(std::string(1'000'000, '[')), "nested more than 512 deep");
}

TEST(Json, WrongKindsAndMissingKeysSayWhatIsThere) {
  Json value = Json::parse(R"({"name": "net", "sizes": [1, 2]})");
  EXPECT_ERROR_TYPE(FormatError, value.at("name").as_int(),
                    "expected an integer in the JSON, found the string \"net\"");
  EXPECT_ERROR_TYPE(FormatError, value.at("sizes").as_string(),
                    "expected a string in the JSON, found an array of 2 elements");
  EXPECT_ERROR_TYPE(FormatError, value.at("sizes").at("x"), "expected an object with the key \"x\"");
  EXPECT_ERROR_TYPE(FormatError, value.at("shape"),
                    "the key \"shape\" is missing from a JSON object; it has name, sizes");
  EXPECT_ERROR_TYPE(FormatError, value.at("sizes").at(2),
                    "element 2 is missing from a JSON array; it has 2 elements");
  EXPECT_ERROR_TYPE(FormatError, Json(2.5).as_int(), "expected an integer in the JSON, found 2.5");
  EXPECT_ERROR_TYPE(FormatError, Json(true).size(), "expected an array or an object in the JSON, found true");
  EXPECT_EQ(Json(3).find("x"), nullptr);
}

TEST(Json, RefusesToWriteWhatJsonCannotHold) {
  EXPECT_USER_ERROR(Json(std::numeric_limits<double>::infinity()).to_text(), "JSON has no number for inf");
  EXPECT_USER_ERROR(Json(std::nan("")).to_text(), "JSON has no number for nan");
  EXPECT_USER_ERROR(Json("\xff").to_text(), "a string of 1 bytes is not valid UTF-8");
  EXPECT_USER_ERROR(Json(uint64_t{1} << 63), "9223372036854775808 does not fit");
  EXPECT_USER_ERROR((Json::Object{{"a", 1}, {"a", 2}}), "cannot have the key \"a\" twice");
}

}  // namespace
}  // namespace weft
