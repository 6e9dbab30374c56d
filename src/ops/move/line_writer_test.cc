#include "ops/move/cpu/framed_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

// Pieces of all lengths, with any source and target alignment, are written as ByteWriter writes them, and
// bytes around them stay unchanged.
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
    other.Finish();
    ASSERT_TRUE(expected == lines) << "run " << run;
  }
}

template <typename T>
void ExpectFramedRows(std::mt19937_64& random) {
  std::vector<std::byte> source(4096), expected(1 << 16, std::byte{0xA5}), lines = expected;
  for (std::byte& byte : source) byte = static_cast<std::byte>(random());
  FramedRow row;
  row.width = sizeof(T);
  row.inner = random() % 3 == 0 ? random() % 8 : 1 + random() % 80;
  row.before = random() % (random() % 4 == 0 ? 90 : 5);
  row.behind = random() % 5;
  row.is_constant = row.inner == 0 || random() % 2 == 0;
  row.fill = random() % 2 == 0 ? 0 : Repeated(static_cast<T>(random()));
  std::vector<uint64_t> before_from(row.before), behind_from(row.behind);
  for (uint64_t& offset : before_from) offset = row.is_constant ? 0 : random() % row.inner * sizeof(T);
  for (uint64_t& offset : behind_from) offset = row.is_constant ? 0 : random() % row.inner * sizeof(T);
  row.before_from = before_from;
  row.behind_from = behind_from;
  std::vector<const std::byte*> rows(random() % 16);
  for (const std::byte*& from : rows) {
    from =
        random() % 8 == 0 ? nullptr : source.data() + random() % (source.size() - row.inner * sizeof(T) + 1);
  }
  const uint64_t begin = random() % (2 * kLineBytes / sizeof(T)) * sizeof(T);
  ByteWriter one(expected.data() + begin);
  LineWriter other(lines.data() + begin, source.data(), source.data() + source.size());
  for (int again = 0; again < 2; ++again) {
    for (const std::byte* const from : rows) AppendFramed<T>(row, from, one);
    AppendRows(row, rows, &other);
  }
  other.Finish();
  ASSERT_TRUE(expected == lines);
}

// The same for rows followed by other elements, which wider vectors may overwrite.
TEST(LineWriter, WritesFramedRowsAsByteWriterDoes) {
  std::mt19937_64 random(TestSeed());
  for (int run = 0; run < 500; ++run) {
    ExpectFramedRows<uint8_t>(random);
    ExpectFramedRows<uint16_t>(random);
    ExpectFramedRows<uint32_t>(random);
    ExpectFramedRows<uint64_t>(random);
  }
}

}  // namespace
}  // namespace anydml::testing
