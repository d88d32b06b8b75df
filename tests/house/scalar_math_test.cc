#include "house/source_tree.h"

// Functors are instantiated with numbers, SIMD packs and expressions, and compiled once for each instruction
// set: a function of the standard library would fit one of the three, and would be shared between instruction
// sets.

namespace weft::house {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Findings standard_math(const SourceFile& file) {
  static const std::regex call(
      R"(\bstd\s*::\s*(?:f?abs|a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|log(?:2|10|1p|b)?|pow|sqrt|cbrt|hypot|fma|)"
      R"(fmod|remainder|remquo|floor|ceil|trunc|l?l?round|l?l?rint|nearbyint|f?max|f?min|fdim|copysign|nextafter|)"
      R"(erfc?|[lt]gamma|ldexp|frexp|scalbn|ilogb|modf|is(?:nan|inf|finite|normal)|signbit|clamp|lerp|midpoint)\s*[(<;])");
  static const std::regex header(R"(#\s*include\s*<(?:cmath|math\.h|complex|algorithm|numeric)>)");
  const std::string text = without_comments(file.text);
  Findings found =
      matches(file, text, call, "calls the standard library; functors find mathematics by their argument");
  Findings more = matches(file, text, header, "includes a header full of inline functions");
  found.insert(found.end(), more.begin(), more.end());
  return found;
}

// Functors are headers. The sources beside them run on the host, once.
std::vector<SourceFile> functor_files() {
  std::vector<SourceFile> files = read_cpp({"src/ops/scalar"});
  std::erase_if(files, [](const SourceFile& file) { return !file.path.ends_with(".h"); });
  return files;
}

TEST(ScalarMath, IsNeverTheStandardLibrarys) {
  EXPECT_THAT(functor_files(), Not(IsEmpty()));
  EXPECT_THAT(findings_in(functor_files(), standard_math), IsEmpty());
}

TEST(ScalarMathRule, FindsCallsAndHeaders) {
  EXPECT_THAT(standard_math({"x.h", "return std::exp(x);"}), SizeIs(1));
  EXPECT_THAT(standard_math({"x.h", "return std::max<T>(a, b) + std :: isnan(a);"}), SizeIs(2));
  EXPECT_THAT(standard_math({"x.h", "using std::tanh;"}), SizeIs(1));
  EXPECT_THAT(standard_math({"x.h", "#include <cmath>\n"}), SizeIs(1));
  for (const char* name :
       {"abs",  "fabs", "sinh",   "acos", "atan2", "exp2", "expm1",  "log1p", "log10",    "sqrt",
        "cbrt", "fmod", "lround", "rint", "fmin",  "erfc", "lgamma", "isinf", "copysign", "fma"})
    EXPECT_THAT(standard_math({"x.h", "std::" + std::string(name) + "(x)"}), SizeIs(1)) << name;
}

TEST(ScalarMathRule, AllowsTheRest) {
  EXPECT_THAT(standard_math({"x.h", "return exp(x);  // never std::exp(x)"}), IsEmpty());
  EXPECT_THAT(standard_math({"x.h", "#include <cstdint>\nstd::uint8_t x; std::string_view name;"}),
              IsEmpty());
  EXPECT_THAT(standard_math({"x.h", "std::max_align_t x;"}), IsEmpty());
}

}  // namespace
}  // namespace weft::house
