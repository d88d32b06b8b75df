#pragma once

// The packs of the instruction set that a file of this folder is compiled for. The build compiles each of
// them once for every set, with WEFT_ISA_LEVEL the value of its `IsaLevel`; WEFT_ISA is the set's namespace.
#if !defined(WEFT_ISA_LEVEL)
#error "WEFT_ISA_LEVEL is set by the build, for each instruction set"
#elif WEFT_ISA_LEVEL == 2
#include "ops/cpu/pack_avx512.h"
#define WEFT_ISA avx512
#elif WEFT_ISA_LEVEL == 1
#include "ops/cpu/pack_avx2.h"
#define WEFT_ISA avx2
#else
#include "ops/cpu/pack_baseline.h"
#define WEFT_ISA baseline
#endif
