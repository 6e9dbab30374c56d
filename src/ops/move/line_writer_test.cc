#include "ops/move/cpu/line_writer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

// Pieces of all lengths, from and to anywhere, are written as ByteWriter writes them, and nothing around
// them.
TEST(LineWriter, WritesEverythingAndNothingElse) {
  std::mt19937_64 random(TestSeed());
  std::vector<std::byte> source(4096), expected(1 << 14), lines(expected.size());
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  for (int run = 0; run < 2000; ++run) {
    const uint64_t begin = random() % (2 * kLineBytes);
    std::fill(expected.begin(), expected.end(), std::byte{0xA5});
    std::fill(lines.begin(), lines.end(), std::byte{0xA5});
    ByteWriter one(expected.data() + begin);
    LineWriter other(lines.data() + begin, source.data(), source.data() + source.size());
    for (uint64_t pieces = random() % 40; pieces > 0; --pieces) {
      const uint64_t bytes = random() % (random() % 4 == 0 ? 300 : 20);
      if (random() % 2 == 0) {
        const uint64_t from = random() % (source.size() - bytes + 1);
        one.Append(source.data() + from, bytes);
        other.Append(source.data() + from, bytes);
      } else {
        const uint64_t word = random() % 3 == 0 ? 0 : random() % 256 * 0x0101010101010101u;
        one.AppendRepeated(word, bytes);
        other.AppendRepeated(word, bytes);
      }
    }
    one.Finish();
    other.Finish();
    ASSERT_TRUE(expected == lines) << "run " << run;
  }
}

}  // namespace
}  // namespace anydml::testing
