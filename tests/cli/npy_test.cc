#include "client/values/npy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

namespace anydml::client {
namespace {

std::vector<std::byte> Bytes(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::string File(int version, const std::string& dictionary, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dictionary.size() >> (8 * i) & 0xFF);
  return file + dictionary + data;
}

std::string Dictionary(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }          \n";
}

Status Parse(const std::string& file, NpyArray* array) { return ParseNpy("x.npy", Bytes(file), array); }

void ExpectError(const std::string& file, const std::string& words) {
  NpyArray array;
  const Status status = Parse(file, &array);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message().substr(0, 7), "x.npy: ");
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(NpyTest, AllVersions) {
  for (int version : {1, 2, 3}) {
    NpyArray array;
    const Status status = Parse(File(version, Dictionary("<u2", "(3, 1)"), "aabbcc"), &array);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(array.tensor.type, DataType::kUInt16);
    EXPECT_EQ(SizesToString(array.tensor), "{3,1}");
    ASSERT_EQ(array.data.size(), 8u);  // padded to a multiple of 4
    EXPECT_EQ(std::memcmp(array.data.data(), "aabbcc\0\0", 8), 0);
  }
  ExpectError(File(4, Dictionary("<u2", "(1,)"), "aa"), "version 4.0");
  ExpectError(File(0, Dictionary("<u2", "(1,)"), "aa"), "version 0.0");
}

TEST(NpyTest, Types) {
  const std::pair<const char*, DataType> types[] = {
      {"<f2", DataType::kFloat16}, {"<f4", DataType::kFloat32}, {"<f8", DataType::kFloat64},
      {"|i1", DataType::kInt8},    {"<i2", DataType::kInt16},   {"<i4", DataType::kInt32},
      {"<i8", DataType::kInt64},   {"|u1", DataType::kUInt8},   {"<u2", DataType::kUInt16},
      {"<u4", DataType::kUInt32},  {"<u8", DataType::kUInt64},  {"|b1", DataType::kUInt8},
      {"=f4", DataType::kFloat32}, {"<i1", DataType::kInt8}};
  for (const auto& [descr, type] : types) {
    NpyArray array;
    const Status status =
        Parse(File(1, Dictionary(descr, "(2,)"), std::string(BitSize(type) / 4, 'x')), &array);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(array.tensor.type, type) << descr;
  }
  for (const char* descr : {"<c8", "<U3", "|S4", "<M8[ns]", "|V2", "f4", "<f", "<f44", "", "<", "<b1 "}) {
    NpyArray array;
    EXPECT_FALSE(Parse(File(1, Dictionary(descr, "(1,)"), "xxxx"), &array).ok()) << descr;
  }
  ExpectError(File(1, Dictionary(">i4", "(1,)"), "xxxx"), "big-endian");
  ExpectError(File(1, Dictionary("|O", "(1,)"), "xxxx"), "objects");
  ExpectError(File(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "xxxx"),
              "structured");
}

TEST(NpyTest, DictionaryStyles) {
  NpyArray array;
  EXPECT_TRUE(
      Parse(File(1, "{\"shape\":(1L,2),\"descr\":\"|u1\",\"fortran_order\":False}", "ab"), &array).ok());
  EXPECT_EQ(SizesToString(array.tensor), "{1,2}");
  EXPECT_TRUE(Parse(File(1, Dictionary("|u1", "()"), "a"), &array).ok());
  EXPECT_EQ(SizesToString(array.tensor), "{1}");
  ExpectError(File(1, "", ""), "wrong header");
  ExpectError(File(1, "{", ""), "wrong header");
  ExpectError(File(1, "{}", ""), "'descr'");
  ExpectError(File(1, "{'descr': '|u1', 'shape': (1,)}", "a"), "'fortran_order'");
  ExpectError(File(1, "{'descr': '|u1', 'fortran_order': False}", "a"), "'shape'");
  ExpectError(File(1, Dictionary("|u1", "(1,)", "Maybe"), "a"), "fortran_order");
  ExpectError(File(1, Dictionary("|u1", "(1,)") + "x", "a"), "after the dictionary");
  ExpectError(File(1, "{'descr': '|u1', 'extra': 1}", "a"), "key other than");
  ExpectError(File(1, "{'descr': '|u1' 'shape': (1,)}", "a"), "','");
}

TEST(NpyTest, FortranOrderIsStrides) {
  NpyArray array;
  ASSERT_TRUE(Parse(File(1, Dictionary("|u1", "(2, 3, 4)", "True"), std::string(24, 'x')), &array).ok());
  EXPECT_EQ(array.tensor.strides[0], 1u);
  EXPECT_EQ(array.tensor.strides[1], 2u);
  EXPECT_EQ(array.tensor.strides[2], 6u);
  EXPECT_EQ(array.tensor.total_bytes, 24u);
}

TEST(NpyTest, Sizes) {
  ExpectError(File(1, Dictionary("|u1", "(2, 3)"), "12345"), "truncated");
  ExpectError(File(1, Dictionary("|u1", "(2, 3)"), "1234567"), "1 bytes follow");
  ExpectError(File(1, Dictionary("|u1", "(0,)"), ""), "size 0");
  ExpectError(File(1, Dictionary("|u1", "(4294967296,)"), ""), "too large");
  ExpectError(File(1, Dictionary("|u1", "(65536, 65536)"), ""), "too large");
  ExpectError(File(1, Dictionary("<f8", "(4294967295,)"), ""), "truncated");
  ExpectError(File(1, Dictionary("<f8", "(18446744073709551615, 18446744073709551615)"), ""), "too large");
  ExpectError(File(1, Dictionary("<f8", "(184467440737095516150000,)"), ""), "too large");
  ExpectError(File(1, Dictionary("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "a"), "9 dimensions");
  std::string huge_header = File(2, "", "");
  huge_header[11] = '\x7F';  // claims about 2 GiB
  ExpectError(huge_header, "header claims");
}

TEST(NpyTest, WrittenHeadersReadBack) {
  const uint32_t sizes[] = {2, 3, 4};
  for (uint32_t type = 1; type <= 11; ++type) {
    for (uint32_t rank = 1; rank <= 3; ++rank) {
      const TensorDesc tensor = PackedTensor(static_cast<DataType>(type), sizes, rank);
      const std::string header = NpyHeader(tensor);
      EXPECT_EQ(header.size() % 64, 0u);
      NpyArray array;
      const Status status =
          Parse(header + std::string(ElementCount(tensor) * BitSize(tensor.type) / 8, 'x'), &array);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(array.tensor.type, tensor.type);
      EXPECT_TRUE(SameLayout(array.tensor, tensor));
    }
  }
  EXPECT_NE(NpyHeader(PackedTensor(DataType::kInt8, sizes, 1)).find("'|i1'"), std::string::npos);
  EXPECT_NE(NpyHeader(PackedTensor(DataType::kFloat32, sizes, 1)).find("'shape': (2,), }"),
            std::string::npos);
}

// Arbitrary changes to a file: it is read consistently, or refused.
TEST(NpyTest, RandomCorruption) {
  const char* fixed_seed = std::getenv("ANYDML_TEST_SEED");
  const unsigned seed =
      fixed_seed != nullptr ? static_cast<unsigned>(std::atoll(fixed_seed)) : std::random_device()();
  std::cout << "ANYDML_TEST_SEED=" << seed << "\n";
  std::mt19937 random(seed);
  const std::string originals[] = {File(1, Dictionary("<f4", "(2, 3)"), std::string(24, 'x')),
                                   File(2, Dictionary("|u1", "(3,)", "True"), "abc"),
                                   File(3, Dictionary("<i8", "()"), "12345678")};
  constexpr char kLikely[] = "{}()[]'\",:<>|=0123456789TFL\\\n fiub";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file = originals[round % 3];
    for (unsigned change = random() % 4 + 1; change > 0; --change) {
      const size_t at = random() % file.size();
      switch (random() % 5) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file[at] = kLikely[random() % (sizeof(kLikely) - 1)];
          break;
        case 2:
          file.erase(at, random() % 8);
          break;
        case 3:
          file.insert(at, std::string(random() % 8, kLikely[random() % (sizeof(kLikely) - 1)]));
          break;
        case 4:
          file.resize(at + 1);
          break;
      }
      if (file.empty()) file = "x";
    }
    NpyArray array;
    const Status status = Parse(file, &array);
    if (!status.ok()) {
      EXPECT_GT(status.message().size(), 7u);
      continue;
    }
    ++accepted;
    EXPECT_EQ(array.data.size(), MinimumTotalBytes(array.tensor));
    EXPECT_LE(array.data.size(), file.size() + 3);
    EXPECT_GE(array.tensor.rank, 1u);
  }
  std::cout << accepted << " accepted\n";
}

}  // namespace
}  // namespace anydml::client
