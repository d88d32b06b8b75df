#pragma once

#include "ops/cpu/gemm/problem.h"

// GEMM on weft's threads, with the same bits for any number of them. On x86-64 these are weft's own loops
// (driver.cc); elsewhere, or with the build option WEFT_OWN_GEMM off, OpenBLAS computes tiles
// (openblas_driver.cc).
namespace weft::cpu {

extern const bool kOwnGemm;  // weft's own loops

// T is float or double. Any strides, but c has unit stride along its rows or its columns.
template <typename T>
void run_gemm(const Gemm<T>& gemm);

// S is Half or BFloat16: computes in f32 and rounds once. k is not zero; any strides.
template <typename S>
void run_widening_gemm(const Gemm<float, S, S>& gemm);

}  // namespace weft::cpu
