// Tiles of byte products for all instruction sets of the processor, against sums computed element by element;
// and the text with written-out instructions that the x86 tiles share.
#include "ops/integer_product/cpu/dot_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/integer_product/cpu/dot_amx_tile.h"
#include "ops/integer_product/cpu/dot_tile.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

// The instructions multiply the panels of this machine.
int32_t Product(int8_t x, uint8_t column) {
  return x * (kUnsignedColumns ? column : static_cast<int8_t>(column));
}

// VPDPBUSD.
template <uint32_t kWords>
struct EmulatedWords : WholeWords {
  struct Vector {
    uint32_t lanes[kWords];
  };
  static constexpr uint32_t kLanes = kWords;
  static Vector Zero() { return {}; }
  static Vector Load(const void* from) {
    Vector result;
    std::memcpy(&result, from, sizeof(result));
    return result;
  }
  static Vector Flip(Vector bytes, uint8_t flip) {
    for (uint32_t& lane : bytes.lanes) lane ^= flip * 0x01010101u;
    return bytes;
  }
  // From every 16 bytes the first 8 (from 0) or the last 8 (from 8), `size` from each vector in turn.
  static Vector InTurn(const Vector& a, const Vector& b, uint32_t from, uint32_t size) {
    Vector result;
    for (uint32_t byte = 0; byte < sizeof(result); ++byte) {
      const Vector& source = byte / size % 2 == 0 ? a : b;
      const uint32_t at = byte / 16 * 16 + from + byte % 16 / (2 * size) * size + byte % size;
      std::memcpy(reinterpret_cast<char*>(&result) + byte, reinterpret_cast<const char*>(&source) + at, 1);
    }
    return result;
  }
  static Vector LowBytes(const Vector& a, const Vector& b) { return InTurn(a, b, 0, 1); }
  static Vector HighBytes(const Vector& a, const Vector& b) { return InTurn(a, b, 8, 1); }
  static Vector LowPairs(const Vector& a, const Vector& b) { return InTurn(a, b, 0, 2); }
  static Vector HighPairs(const Vector& a, const Vector& b) { return InTurn(a, b, 8, 2); }
  static Vector Repeat(const int8_t* word, uint32_t) {
    Vector result;
    for (uint32_t& lane : result.lanes) std::memcpy(&lane, word, sizeof(lane));
    return result;
  }
  static Vector Dot(Vector sums, const Vector& columns, const Vector& row) {
    for (uint32_t i = 0; i < kWords; ++i) {
      for (uint32_t byte = 0; byte < kStepsOfWord; ++byte) {
        sums.lanes[i] += static_cast<uint32_t>(Product(static_cast<int8_t>(row.lanes[i] >> 8 * byte),
                                                       static_cast<uint8_t>(columns.lanes[i] >> 8 * byte)));
      }
    }
    return sums;
  }
  static void Put(const Vector& sums, int32_t* to, bool accumulate) {
    for (uint32_t i = 0; i < kWords; ++i) {
      to[i] = static_cast<int32_t>((accumulate ? static_cast<uint32_t>(to[i]) : 0) + sums.lanes[i]);
    }
  }
};

// TILEZERO, TILELOADD, TILESTORED, TDPBSUD.
struct EmulatedRegisters {
  static inline thread_local uint8_t tiles[8][kAmxSide][kAmxSide * kStepsOfWord];
  template <int kTile>
  static void Zero() {
    std::memset(tiles[kTile], 0, sizeof(tiles[kTile]));
  }
  template <int kTile>
  static void Load(const float* from, uint64_t stride) {
    for (uint32_t row = 0; row < kAmxSide; ++row) {
      std::memcpy(tiles[kTile][row], reinterpret_cast<const char*>(from) + row * stride, sizeof(tiles[0][0]));
    }
  }
  template <int kTile>
  static void Store(float* to, uint64_t stride) {
    for (uint32_t row = 0; row < kAmxSide; ++row) {
      std::memcpy(reinterpret_cast<char*>(to) + row * stride, tiles[kTile][row], sizeof(tiles[0][0]));
    }
  }
  template <int kSums, int kA, int kB>
  static void Dot() {
    for (uint32_t i = 0; i < kAmxSide; ++i) {
      for (uint32_t j = 0; j < kAmxSide; ++j) {
        uint32_t sum;
        std::memcpy(&sum, &tiles[kSums][i][j * kStepsOfWord], sizeof(sum));
        for (uint32_t step = 0; step < kAmxSide * kStepsOfWord; ++step) {
          const uint8_t y = tiles[kB][step / kStepsOfWord][j * kStepsOfWord + step % kStepsOfWord];
          sum += static_cast<uint32_t>(Product(static_cast<int8_t>(tiles[kA][i][step]), y));
        }
        std::memcpy(&tiles[kSums][i][j * kStepsOfWord], &sum, sizeof(sum));
      }
    }
  }
};

// The index of a row's word in a panel.
uint64_t AtRow(const DotTile& tile, uint64_t word, uint64_t row) {
  return (word / tile.row_words * tile.kernel.rows + row) * tile.row_words + word % tile.row_words;
}

// The same for a column; steps are `stride` apart.
uint64_t AtColumn(const DotTile& tile, uint64_t word, uint64_t column, uint64_t stride) {
  return (word / tile.column_words * stride + column) * tile.column_words + word % tile.column_words;
}

void ExpectSums(const DotTile& tile, MicroKernel::Run* run, uint32_t columns, uint64_t steps,
                bool accumulate) {
  const MicroKernel& kernel = tile.kernel;
  const uint64_t b_stride = kernel.columns + 16, to_stride = kernel.columns + 5;
  std::minstd_rand random(static_cast<uint32_t>(steps) + columns);
  // Extremes are frequent, so that saturation would be visible.
  const auto bytes = [&](uint64_t count) {
    std::vector<uint8_t> result(count);
    for (uint8_t& byte : result) {
      const uint32_t number = random() >> 8;
      byte = static_cast<uint8_t>(number % 3 == 0   ? 0x7F
                                  : number % 3 == 1 ? 0x80 + number % 2 * 0x7F
                                                    : number);
    }
    return result;
  };
  const std::vector<uint8_t> a = bytes(steps * kernel.rows * kStepsOfWord);
  const std::vector<uint8_t> b = bytes(steps * b_stride * kStepsOfWord);
  std::vector<int32_t> sums(kernel.rows * to_stride);
  for (int32_t& sum : sums) sum = static_cast<int32_t>(random());
  std::vector<int32_t> expected = sums;
  for (uint64_t i = 0; i < kernel.rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) {
      auto sum = static_cast<uint32_t>(accumulate ? sums[i * to_stride + j] : 0);
      for (uint64_t step = 0; step < steps * kStepsOfWord; ++step) {
        const uint64_t word = step / kStepsOfWord, byte = step % kStepsOfWord;
        const auto x = static_cast<int8_t>(a[AtRow(tile, word, i) * kStepsOfWord + byte]);
        const uint8_t y = b[AtColumn(tile, word, j, b_stride) * kStepsOfWord + byte];
        sum += static_cast<uint32_t>(Product(x, y));
      }
      expected[i * to_stride + j] = static_cast<int32_t>(sum);
    }
  }
  std::vector<float> words[3];
  const auto as_floats = [](const auto& from, std::vector<float>& to) {
    to.resize(from.size() * sizeof(from[0]) / sizeof(float));
    if (!from.empty()) std::memcpy(to.data(), from.data(), to.size() * sizeof(float));
    return to.data();
  };
  float* const to = as_floats(sums, words[2]);
  run(as_floats(a, words[0]), as_floats(b, words[1]), b_stride, steps, to, to_stride, accumulate, {to, 0});
  std::memcpy(sums.data(), to, sums.size() * sizeof(int32_t));
  EXPECT_EQ(sums, expected) << kernel.rows << " x " << columns << " of " << steps << " words"
                            << (accumulate ? ", added" : "");
}

void ExpectSums(const DotTile& tile) {
  const MicroKernel& kernel = tile.kernel;
  ASSERT_LE(kernel.rows * kernel.columns, kMaxTileRows * kMaxTileColumns);
  ASSERT_LE(std::max(kernel.rows, kernel.columns), kMaxDotWidth);
  ASSERT_LE(tile.row_words, kMaxRowWords);
  ASSERT_LE(tile.column_words, kMaxColumnWords);
  ASSERT_EQ(tile.row_words % tile.column_words, 0u);
  EXPECT_TRUE(kernel.bytes);
  if (tile.begin != nullptr) tile.begin();
  for (uint32_t vectors = 1; vectors * kernel.lanes <= kernel.columns; ++vectors) {
    const uint32_t columns = vectors * kernel.lanes;
    const auto run = columns == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
    for (const uint64_t steps : {0, 1, 2, 7, 63, 64, 65, 200}) {
      const uint64_t whole = (steps + tile.row_words - 1) / tile.row_words * tile.row_words;
      for (const bool accumulate : {false, true}) {
        ExpectSums(tile, run, columns, whole, accumulate);
      }
    }
  }
  if (tile.end != nullptr) tile.end();
}

void ExpectFewSums(const FewDot& few) {
  ASSERT_LE(few.columns, kMaxFewColumns);
  const uint64_t count = 3 * uint64_t{few.columns}, stride = count + 16;
  std::minstd_rand random(few.columns);
  for (uint32_t rows = 1; rows <= kMaxFewRows; ++rows) {
    for (const uint8_t flip : {0, 0x80}) {
      int8_t a[kMaxFewRows][kFewSteps];
      for (auto& row : a) {
        for (int8_t& x : row) x = static_cast<int8_t>(random() >> 8);
      }
      std::vector<uint8_t> b(2 * kFewSteps * stride);
      for (uint8_t& x : b) x = static_cast<uint8_t>(random() >> 8);
      FewBytes bytes = {{}, kFewSteps * stride, flip};
      for (uint32_t step = 0; step < kFewSteps; ++step) bytes.b[step] = b.data() + step * stride;
      std::vector<int32_t> sums(rows * stride), expected;
      for (int32_t& sum : sums) sum = static_cast<int32_t>(random() % 1000);
      expected = sums;
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint64_t column = 0; column < count; ++column) {
          const uint64_t in_block = column % few.columns;
          const uint64_t at =
              column - in_block + in_block % 16 / 4 * (few.columns / 4) + in_block / 16 * 4 + column % 4;
          for (uint32_t step = 0; step < kFewSteps; ++step) {
            expected[row * stride + at] += Product(a[row][step], b[step * stride + column] ^ flip);
          }
        }
      }
      few.add(a, rows, bytes, count, sums.data(), stride);
      EXPECT_EQ(sums, expected) << rows << " rows";
    }
  }
}

void ExpectOperatorsAgree(const DotKernels& kernels) {
  constexpr double kSeconds = 1;
  UseDotKernels(&kernels);
  ForCases(family::integer_product::Cases(), kSeconds, [](const Case& problem) {
    ExpectAllAgree(problem.desc, problem.inputs, problem.in_place);
    OperatorDesc packed = problem.desc;
    for (size_t i = 0; i < packed.fields.size(); ++i) {
      auto* const tensor = std::get_if<TensorDesc>(&packed.fields[i]);
      if (tensor != nullptr && packed.schema->fields[i].kind == FieldKind::kInput)
        tensor->owned_by_dml = true;
    }
    ExpectAllAgree(packed, problem.inputs);
  });
  UseDotKernels(nullptr);
}

constexpr auto kFinds = {&FindI8mmDot,   &FindNeonDot,    &FindAmxDot,
                         &FindAvx512Dot, &FindAvxVnniDot, &FindAvx2Dot};

TEST(DotKernel, SumsOfAllInstructionSets) {
  uint32_t found = 0;
  for (auto* const find : kFinds) {
    const DotKernels* const kernels = find();
    if (kernels == nullptr) continue;
    SCOPED_TRACE(found);
    ++found;
    ExpectSums(kernels->tile);
    ExpectSums(kernels->one_row);
    if (kernels->few.add != nullptr) ExpectFewSums(kernels->few);
  }
  RecordProperty("instruction sets", static_cast<int>(found));
  EXPECT_EQ(FindDotKernels() != nullptr, found != 0);
}

// Other tests run only the processor's best instruction set.
TEST(DotKernel, OperatorsWithOtherInstructionSets) {
  const DotKernels* const best = FindDotKernels();
  for (auto* const find : kFinds) {
    const DotKernels* const kernels = find();
    if (kernels != nullptr && kernels != best) ExpectOperatorsAgree(*kernels);
  }
}

// The written-out x86 tiles, each with the operators' cases.
class WrittenOut : public ::testing::TestWithParam<DotKernels> {};

TEST_P(WrittenOut, Sums) {
  ExpectSums(GetParam().tile);
  ExpectSums(GetParam().one_row);
  ExpectFewSums(GetParam().few);
}

TEST_P(WrittenOut, OperatorsAgreeWithTheReference) { ExpectOperatorsAgree(GetParam()); }

constexpr DotKernels kWide = DotKernelsOf<EmulatedWords<16>, 8, 3>();
constexpr DotKernels kNarrow = DotKernelsOf<EmulatedWords<8>, 6, 2>();
constexpr DotKernels kAmx = {AmxTileOf<EmulatedRegisters>(nullptr, nullptr), kWide.one_row, kWide.few};

std::string NameOf(const ::testing::TestParamInfo<DotKernels>& info) {
  constexpr const char* kNames[] = {"avx512", "avx_vnni", "amx"};
  return kNames[info.index];
}
INSTANTIATE_TEST_SUITE_P(X86, WrittenOut, ::testing::Values(kWide, kNarrow, kAmx), NameOf);

}  // namespace
}  // namespace anydml::testing
