#include "client/json/json.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace anydml::client {
namespace {

// Values refer to the texts from which they were read.
std::deque<std::string> texts;

JsonValue Parse(const std::string& given) {
  const std::string& text = texts.emplace_back(given);
  JsonValue value;
  const Status status = ParseJson("m.json", text, &value);
  EXPECT_TRUE(status.ok()) << status.message();
  return value;
}

std::vector<JsonValue> Elements(const JsonValue& array) {
  std::vector<JsonValue> list;
  VisitElements(array, [&list](const JsonValue& element) {
    list.push_back(element);
    return true;
  });
  EXPECT_EQ(list.size(), CountElements(array));
  return list;
}

std::vector<JsonValue> Leaves(const JsonValue& array) {
  std::vector<JsonValue> list;
  VisitLeaves(array, [&list](const JsonValue& leaf) {
    list.push_back(leaf);
    return true;
  });
  return list;
}

void ExpectError(const std::string& text, const std::string& sentence) {
  JsonValue value;
  const Status status = ParseJson("m.json", text, &value);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(status.message(), "m.json:" + sentence);
}

TEST(JsonTest, Values) {
  const JsonValue root = Parse(R"({"a": [1, -2.5e+3, true, false, null, "x"], "b": {}})");
  ASSERT_EQ(root.keys, (std::vector<std::string>{"a", "b"}));
  const std::vector<JsonValue> list = Elements(root.elements[0]);
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list[0].text, "1");
  EXPECT_EQ(list[1].text, "-2.5e+3");
  EXPECT_EQ(list[2].kind, JsonValue::Kind::kBool);
  EXPECT_EQ(list[3].text, "false");
  EXPECT_EQ(list[4].kind, JsonValue::Kind::kNull);
  EXPECT_EQ(list[5].text, "x");
  EXPECT_EQ(root.elements[1].kind, JsonValue::Kind::kObject);
}

TEST(JsonTest, NumbersKeepEveryDigit) {
  EXPECT_EQ(Parse("18446744073709551615").text, "18446744073709551615");
  EXPECT_EQ(Parse("-9223372036854775808").text, "-9223372036854775808");
  EXPECT_EQ(Parse("0.1000000000000000055511151231257827").text, "0.1000000000000000055511151231257827");
}

// As Python's json module writes them.
TEST(JsonTest, NotANumberAndInfinity) {
  const std::vector<JsonValue> list = Elements(Parse("[NaN, Infinity, -Infinity, -Inf]"));
  ASSERT_EQ(list.size(), 4u);
  for (const JsonValue& value : list) EXPECT_EQ(value.kind, JsonValue::Kind::kNumber);
  EXPECT_EQ(list[0].text, "NaN");
  EXPECT_EQ(list[2].text, "-Infinity");
  EXPECT_EQ(list[2].column, 17u);
  ExpectError("[Nan]", "1:2: found 'Nan', expected a value");
  ExpectError("[-inf]", "1:3: found 'inf', expected a digit");
  ExpectError("[1, 1e400]", "1:5: a number beyond the largest of 64 bits (1.8e308)");
}

TEST(JsonTest, CommentsAndTrailingCommas) {
  const JsonValue root = Parse("// first\n[1, /* two\nlines */ 2, // last\n]/**/ // end");
  EXPECT_EQ(Elements(root).size(), 2u);
  EXPECT_EQ(Parse("\xEF\xBB\xBF{\"a\":1,}").keys.size(), 1u);
}

TEST(JsonTest, Positions) {
  const JsonValue root = Parse("{\n  \"a\": [1,\n        22]\n}");
  EXPECT_EQ(root.elements[0].line, 2u);
  EXPECT_EQ(root.elements[0].column, 8u);
  const std::vector<JsonValue> list = Elements(root.elements[0]);
  EXPECT_EQ(list[0].line, 2u);
  EXPECT_EQ(list[0].column, 9u);
  EXPECT_EQ(list[1].line, 3u);
  EXPECT_EQ(list[1].column, 9u);
}

// Comments, brackets in strings, and their positions.
TEST(JsonTest, Leaves) {
  const JsonValue root = Parse("[1, [[\"]\"], // ]\n [], [{\"a\": [7]}, 4,]],]");
  EXPECT_EQ(Elements(root).size(), 2u);
  EXPECT_EQ(Elements(Elements(root)[1]).size(), 3u);
  const std::vector<JsonValue> list = Leaves(root);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].text, "1");
  EXPECT_EQ(list[1].text, "]");
  EXPECT_EQ(list[2].kind, JsonValue::Kind::kObject);
  EXPECT_EQ(list[2].line, 2u);
  EXPECT_EQ(list[2].column, 7u);
  EXPECT_EQ(Elements(list[2].elements[0])[0].text, "7");
  EXPECT_EQ(list[3].text, "4");
  EXPECT_EQ(CountElements(Parse("[]")), 0u);
  EXPECT_EQ(Leaves(Parse("[[], [[]]]")).size(), 0u);
}

// Objects in memory take many times the size of their text.
TEST(JsonTest, NumberOfKeys) {
  const auto object = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"" + std::to_string(i) + "\":{},";
    return text + "}";
  };
  EXPECT_EQ(Parse(object(262144)).keys.size(), 262144u);
  ExpectError(object(262145), "1:3034620: more than 262144 keys; large data belongs into files");
  // Objects in arrays are read one after the other.
  const std::string half = object(200000);
  EXPECT_EQ(Parse("[" + half + "," + half + "]").kind, JsonValue::Kind::kArray);
}

TEST(JsonTest, LongStrings) {
  EXPECT_EQ(Parse("\"" + std::string(65536, 'x') + "\"").text.size(), 65536u);
  ExpectError("\"" + std::string(65537, 'x') + "\"", "1:1: a string of more than 65536 bytes");
}

TEST(JsonTest, Escapes) {
  EXPECT_EQ(Parse(R"("\"\\\/\b\f\n\r\t")").text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(Parse(R"("\u0041\u00e9\u20AC\uD83D\uDE00")").text, "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(JsonTest, BrokenText) {
  ExpectError("", "1:1: found the end of the file, expected a value");
  ExpectError("{\"a\": }", "1:7: found '}', expected a value");
  ExpectError("{a: 1}", "1:2: found 'a', expected a key in double quotes or '}'");
  ExpectError("{\"a\" 1}", "1:6: found '1', expected ':' after the key");
  ExpectError("{\"a\": 1 \"b\": 2}", "1:9: found '\"', expected ',' or '}'");
  ExpectError("[1\n2]", "2:1: found '2', expected ',' or ']'");
  ExpectError("[1, 2", "1:6: found the end of the file, expected ',' or ']'");
  ExpectError("[,]", "1:2: found ',', expected a value");
  ExpectError("[1]\n[2]", "2:1: found '[', expected the end of the file");
  ExpectError("nan", "1:1: found 'nan', expected a value");
  ExpectError("{\"a\": 1, \"a\": 2}", "1:10: the key 'a' is given twice");
}

TEST(JsonTest, BrokenNumbersAndStrings) {
  ExpectError("-", "1:2: found the end of the file, expected a digit");
  ExpectError("[1.]", "1:4: found ']', expected a digit");
  ExpectError("[1e+]", "1:5: found ']', expected a digit");
  ExpectError("[01]", "1:3: found '1', expected ',' or ']'");
  ExpectError("[.5]", "1:2: found '.', expected a value");
  ExpectError("\"abc", "1:5: found the end of the file, expected the end of a string");
  ExpectError("\"a\nb\"",
              "1:3: a string holds a line break or control character; write it as an escape (\\n)");
  ExpectError("\"\\x\"", "1:3: found 'x', expected one of \"\\/bfnrtu after a backslash");
  ExpectError("\"\\u12g4\"", "1:6: found 'g4', expected four hexadecimal digits after \\u");
  ExpectError("\"\\uD800\"", "1:8: half of a surrogate pair");
  ExpectError("\"\\uDC00\"", "1:1: half of a surrogate pair");
  ExpectError("[1,\n /* no end", "2:2: this comment has no end");
  ExpectError("/* no end", "1:1: this comment has no end");
  ExpectError("/", "1:1: found '/', expected a value or a comment");
  ExpectError(std::string("\0", 1), "1:1: found '?', expected a value");
}

TEST(JsonTest, Depth) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  Parse(nested(60));
  ExpectError(nested(1'000'000), "1:66: nested more than 64 levels deep");
}

// Arbitrary bytes give a document or an error; the sanitizers run this, too.
TEST(JsonTest, NeverCrashes) {
  const std::string good = R"({"a": [1, -2.5e3, "nan\u00e9\n"], /* c */ "b": {"c": [true, null,],},} // end)";
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (unsigned change = random() % 4; change > 0 && !text.empty(); --change) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    JsonValue value;
    const Status status = ParseJson("m.json", text, &value);
    if (!status.ok()) {
      EXPECT_EQ(status.message().substr(0, 7), "m.json:");
    }
  }
}

}  // namespace
}  // namespace anydml::client
