#include "client/json/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "client/json/json.h"

namespace anydml::client {
namespace {

std::string Quoted(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return json.text();
}

TEST(JsonWriter, Nesting) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a").BeginArray();
  json.Number(18446744073709551615u);
  json.BeginObject();
  json.End();
  json.BeginArray();
  json.End();
  json.Bool(true);
  json.Null();
  json.End();
  json.Key("b").String("c");
  EXPECT_EQ(json.depth(), 1u);
  json.End();
  EXPECT_EQ(json.text(), R"({"a":[18446744073709551615,{},[],true,null],"b":"c"})");
}

// If a command fails in the middle, its document can still be completed.
TEST(JsonWriter, KeyWithoutValue) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a");
  json.End();
  EXPECT_EQ(json.text(), R"({"a":null})");
}

TEST(JsonWriter, Strings) {
  EXPECT_EQ(Quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(Quoted(std::string_view("\n\t\x01\0", 4)), R"("\n\u0009\u0001\u0000")");
  EXPECT_EQ(Quoted("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(JsonWriter, BytesThatAreNotUtf8) {
  for (const char* bytes :
       {"\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    const std::string quoted = Quoted(bytes);
    EXPECT_EQ(quoted.substr(0, 7), "\"\\ufffd") << quoted;
    JsonValue value;
    EXPECT_TRUE(ParseJson("test", quoted, &value).ok());
  }
}

TEST(JsonWriter, Tensors) {
  const uint32_t sizes[] = {2, 2};
  const float values[] = {1.5f, NAN, -INFINITY, 1e20f};
  const TensorDesc tensor = PackedTensor(DataType::kFloat32, sizes, 2);
  JsonWriter json;
  json.BeginObject();
  json.TensorShape(tensor);
  json.TensorValues(tensor, std::as_bytes(std::span(values)));
  json.End();
  EXPECT_EQ(json.text(), R"({"dataType":"FLOAT32","sizes":[2,2],"values":[[1.5,"nan"],["-inf",1e+20]]})");
}

}  // namespace
}  // namespace anydml::client
