// The vector functions that come from SLEEF, as X(name, its precision suffix). Deterministic families only.
// No include guard: included where a macro X is defined.
#define WEFT_SLEEF_UNARY(X)                                                                              \
  X(exp, u10)                                                                                            \
  X(exp2, u10)                                                                                           \
  X(expm1, u10) X(log, u10) X(log2, u10) X(log10, u10) X(log1p, u10) X(sin, u10) X(cos, u10) X(tan, u10) \
      X(asin, u10) X(acos, u10) X(atan, u10) X(sinh, u10) X(cosh, u10) X(tanh, u10) X(asinh, u10)        \
          X(acosh, u10) X(atanh, u10) X(erf, u10) X(erfc, u15)
#define WEFT_SLEEF_BINARY(X) X(pow, u10) X(hypot, u05) X(atan2, u10) X(fmod, )
