// This file is compiled for AMX with byte products: it must not contain anything that the linker could share
// with other files.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__AMX_INT8__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/integer_product/cpu/dot_amx_tile.h"

namespace anydml {
namespace {

// GCC's intrinsics take register numbers only as literals, and do not declare what they read.
struct AmxRegisters {
  template <int kTile>
  static void Zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void Load(const float* from, uint64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void Store(float* to, uint64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSums, int kA, int kB>
  static void Dot() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kA), "i"(kB));
  }
};

// All eight registers have 16 rows of 64 bytes.
void Begin() {
  struct {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  static_assert(sizeof(config) == 64);
  // Not _tile_loadconfig: GCC 12 assumes that it reads 8 bytes, and drops stores to the others.
  asm volatile("ldtilecfg %0" ::"m"(config));
}
// Without it, the operating system would save the registers at every context switch.
void End() { _tile_release(); }

bool HasAmx() {
  unsigned a, b, c, d;
  constexpr unsigned kTileAndInt8 = 3u << 24, kXsaveByKernel = 1u << 27;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTileAndInt8) != kTileAndInt8) return false;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsaveByKernel) == 0) return false;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3u << 17;
  if ((low & kTileState) != kTileState) return false;
  // The operating system grants the registers on request. From then on it requires larger signal stacks, so
  // the request is made only when there is such a product.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const DotKernels* FindAmxDot() {
  static const DotKernels* const found = []() -> const DotKernels* {
    const DotKernels* const others = FindAvx512Dot();  // for few rows
    if (others == nullptr || !HasAmx()) return nullptr;
    static DotKernels kernels = *others;
    kernels.tile = AmxTileOf<AmxRegisters>(&Begin, &End);
    return &kernels;
  }();
  return found;
}

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindAmxDot() { return nullptr; }
}  // namespace anydml
#endif
