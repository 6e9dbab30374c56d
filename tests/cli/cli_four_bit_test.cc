// UINT4 and INT4: two elements per byte, the first in the lower half; in .npy files one byte each.
#include "anydml/values/tensor_source.h"
#include "cli_test_util.h"
#include "client/packed_elements.h"
#include "client/tensor_text.h"

namespace anydml::client {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(FourBits, PackAndUnpack) {
  std::vector<std::byte> elements = Bytes({1, -8, 7, -1, 5});
  Pack(DataType::kInt4, &elements);
  EXPECT_EQ(elements, Bytes({0x81, 0xF7, 0x05}));
  EXPECT_EQ(Unpack(DataType::kInt4, elements, 5), Bytes({1, -8, 7, -1, 5}));
  EXPECT_EQ(Unpack(DataType::kUInt4, elements, 5), Bytes({1, 8, 7, 15, 5}));
  EXPECT_EQ(PackedBytes(DataType::kUInt4, 5), 3u);
  std::vector<std::byte> others = Bytes({1, 2, 3});
  Pack(DataType::kInt8, &others);
  EXPECT_EQ(others, Bytes({1, 2, 3}));
}

TEST(FourBits, Tensors) {
  NpyArray array;
  ASSERT_TRUE(ReadTensorSource("F", "[[1,-8,7],[-1,5,0]]:int4", &array).ok());
  EXPECT_EQ(array.data, Bytes({0x81, 0xF7, 0x05, 0}));  // padded to four bytes
  EXPECT_EQ(array.tensor.total_bytes, 4u);
  EXPECT_EQ(TensorToString(array.tensor, array.data), "[[ 1, -8,  7],\n [-1,  5,  0]]");
  ASSERT_TRUE(ReadTensorSource("F", "random:1000:uint4:seed=3:max=15", &array).ok());
  EXPECT_EQ(array.data.size(), 500u);
  std::vector<int> counts(16);
  for (int i = 0; i < 1000; ++i)
    ++counts[static_cast<size_t>(FourBits(DataType::kUInt4, array.data.data(), i))];
  for (const int count : counts) EXPECT_GT(count, 30);
  ASSERT_TRUE(ReadTensorSource("F", "random:1000:int4:min=-8:max=-7", &array).ok());
  for (int i = 0; i < 1000; ++i) EXPECT_LE(FourBits(DataType::kInt4, array.data.data(), i), -7);
}

class CliFourBitTest : public CliTest {
 protected:
  void WriteModel(const std::string& resource, const std::string& commands) const {
    WriteBytes("m.json", "{ \"resources\": { \"x\": " + resource +
                             "}, \"dispatchables\": {}, \"commands\": [" + commands + "] }");
  }
  std::string Output() const {
    const CliResult result = Run({"run", "m.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  std::string Printed(const std::string& type, const std::string& values) const {
    WriteModel("{ \"initialValuesDataType\": \"" + type + "\", \"initialValues\": " + values + "}",
               R"({ "type": "print", "resource": "x" })");
    return Output();
  }
};

TEST_F(CliFourBitTest, InitialValues) {
  EXPECT_EQ(Printed("INT4", "[1, -8, 7]"), "Resource 'x': 1, -8, 7\n");
  EXPECT_EQ(Printed("UINT4", "[[15, 0], [3, 4]]"), "Resource 'x': 15, 0, 3, 4\n");
  EXPECT_EQ(Printed("INT4", R"({ "valueCount": 3, "value": -2 })"), "Resource 'x': -2, -2, -2\n");
  // They wrap around like other integers.
  EXPECT_EQ(Printed("INT4", R"({ "valueCount": 5, "valueStart": 5, "valueDelta": 1 })"),
            "Resource 'x': 5, 6, 7, -8, -7\n");
  EXPECT_EQ(Printed("UINT4", R"({ "valueCount": 4, "valueStart": 14, "valueDelta": 1 })"),
            "Resource 'x': 14, 15, 0, 1\n");
  EXPECT_EQ(Printed("INT4", R"({ "valueCount": 3, "randomSeed": 1, "valueMin": -8, "valueMax": -8 })"),
            "Resource 'x': -8, -8, -8\n");
}

TEST_F(CliFourBitTest, Files) {
  WriteNpy("in.npy", "|i1", "(2, 3)", std::vector<int8_t>{1, -1, -8, 5, 7, 0}, /*fortran=*/true);
  WriteBytes("in.bin", "\x21\x43");
  WriteModel(R"({ "initialValuesDataType": "INT4", "initialValues": { "sourcePath": "in.npy" } })",
             R"({ "type": "print", "resource": "x", "dimensions": [2, 3] },
                { "type": "writeFile", "resource": "x", "targetPath": "out.npy" },
                { "type": "writeFile", "resource": "x", "targetPath": "out.bin" },
                { "type": "expect", "resource": "x", "values": [1, -8, 7, -1, 5, 0] },
                { "type": "expect", "resource": "x", "sourcePath": "in.npy" },
                { "type": "expect", "resource": "x", "values": [1, -8, 6, -1, 5, 0], "absoluteTolerance": 1 })");
  EXPECT_EQ(Output(), "Resource 'x': (Sizes:{2,3}, DataType:INT4)\n[[ 1, -8,  7],\n [-1,  5,  0]]\n");
  EXPECT_EQ(ReadElements<int8_t>("out.npy", {2, 3}), (std::vector<int8_t>{1, -8, 7, -1, 5, 0}));
  EXPECT_EQ(ReadBytes("out.bin"), "\x81\xF7\x05");
  EXPECT_EQ(Printed("UINT4", R"({ "sourcePath": "in.bin" })"), "Resource 'x': 1, 2, 3, 4\n");
  WriteModel(R"({ "initialValuesDataType": "UINT4", "initialValues": [10, 3] })",
             R"({ "type": "print", "resource": "x", "verbose": true })");
  EXPECT_EQ(Output(), "Resource 'x':\n[0] 10 (0xA)\n[1] 3 (0x3)\n");
  EXPECT_EQ(Text(RunJson(0, {"run", "m.json"}), {"commands", "0", "values"}), "[10,3]");
}

TEST_F(CliFourBitTest, WrongValues) {
  const auto fails = [this](const std::string& resource, const std::string& commands,
                            const std::string& words) {
    WriteModel(resource, commands);
    const std::string sentence = RunFailing(1, {"run", "m.json"});
    EXPECT_NE(sentence.find(words), std::string::npos) << words << "\nin: " << sentence;
  };
  WriteNpy("bytes.npy", "|u1", "(3,)", std::vector<uint8_t>{1, 15, 16});
  WriteNpy("words.npy", "<i4", "(1,)", std::vector<int32_t>{1});
  const std::string four = R"({ "initialValuesDataType": "UINT4", "initialValues": [1, 2, 3] })";
  fails(R"({ "initialValuesDataType": "UINT4", "initialValues": [16] })", "", "'16' is out of range (UINT4)");
  fails(R"({ "initialValuesDataType": "UINT4", "initialValues": { "sourcePath": "bytes.npy" } })", "",
        "bytes.npy: element 2 is 16, which UINT4 cannot hold");
  fails(R"({ "initialValuesDataType": "INT4", "initialValues": { "sourcePath": "words.npy" } })", "",
        "'words.npy' has INT32 elements, but initialValuesDataType is INT4");
  fails(R"({ "initialValues": [ { "type": "INT4", "value": 1 } ] })", "", "needs one of 8 bits or more");
  fails(four, R"({ "type": "expect", "resource": "x", "values": [1, 2] })",
        "2 values are expected, but 'x' has 3");
  fails(four, R"({ "type": "expect", "resource": "x", "values": [1, 2, 3, 0] })", "4 values are expected");
  fails(four, R"({ "type": "expect", "resource": "x", "values": [1, 2, 4] })", "element 2 is 3, expected 4");
  fails(four, R"({ "type": "print", "resource": "x", "dimensions": [4] })",
        "that make the 3 elements of 'x'");
}

}  // namespace
}  // namespace anydml::client
