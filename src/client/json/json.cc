#include "client/json/json.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "client/text.h"

namespace anydml::client {
namespace {

// The parser and the destructor of values recurse.
constexpr size_t kMaxDepth = 64;
// The limit of members in memory at once: those of an object and of the objects in it, except inside arrays.
constexpr size_t kMaxMembers = size_t{1} << 18;
constexpr size_t kMaxStringBytes = size_t{1} << 16;
constexpr unsigned kFlags = rapidjson::kParseCommentsFlag | rapidjson::kParseTrailingCommasFlag |
                            rapidjson::kParseNanAndInfFlag | rapidjson::kParseNumbersAsStringsFlag;

bool IsWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Lines and columns for ascending offsets.
class Places {
 public:
  // `line_start`: negative if the text begins in the middle of a line.
  Places(std::string_view text, uint32_t line, ptrdiff_t line_start)
      : text_(text), line_(line), line_start_(line_start) {}

  void Go(size_t offset) {
    for (; position_ < offset; ++position_) {
      if (text_[position_] != '\n') continue;
      ++line_;
      line_start_ = static_cast<ptrdiff_t>(position_) + 1;
    }
  }
  uint32_t line() const { return line_; }
  uint32_t ColumnOf(size_t offset) const {
    return static_cast<uint32_t>(static_cast<ptrdiff_t>(offset) - line_start_ + 1);
  }

 private:
  const std::string_view text_;
  size_t position_ = 0;
  uint32_t line_;
  ptrdiff_t line_start_;
};

// Makes values from RapidJSON's events. At each event, the stream is after its text.
class Builder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Builder> {
 public:
  enum class Visited { kNothing, kElements, kLeaves };  // of an array

  Builder(std::string_view text, size_t start, const Places& places, Visited visited = Visited::kNothing,
          const JsonVisit& visit = {})
      : text_(text), stream_(text.data(), text.size()), places_(places), visited_(visited), visit_(visit) {
    open_.reserve(kMaxDepth + 1);  // pointers to enclosing values must stay valid
    stream_.src_ += start;
  }

  rapidjson::ParseResult Parse() { return rapidjson::Reader().Parse<kFlags>(stream_, *this); }
  size_t position() const { return stream_.Tell(); }
  JsonValue& root() { return root_; }
  // Why an event ended the parsing, and where; empty if the visitor did.
  const std::string& failure() const { return failure_; }
  size_t failure_at() const { return failure_at_; }

  bool Null() { return Scalar(JsonValue::Kind::kNull, "null", 4); }
  bool Bool(bool value) { return Scalar(JsonValue::Kind::kBool, value ? "true" : "false", value ? 4 : 5); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    return Scalar(JsonValue::Kind::kNumber, {text, length}, length);
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    const size_t written = WrittenLength();
    return CheckString({text, length}, written) && Scalar(JsonValue::Kind::kString, {text, length}, written);
  }

  bool StartObject() { return Open(JsonValue::Kind::kObject); }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    const size_t written = WrittenLength();
    if (!CheckString({text, length}, written)) return false;
    std::string& key = open_.back().value->keys.emplace_back(text, length);
    if (!open_.back().keys.insert(key).second)
      return Fail(written, StrCat("the key '", Printable(key), "' is given twice"));
    if (++members_ <= kMaxMembers) return true;
    return Fail(written, StrCat("more than ", kMaxMembers, " keys; large data belongs into files"));
  }
  bool EndObject(rapidjson::SizeType) { return Close(); }

  bool StartArray() { return Open(JsonValue::Kind::kArray); }
  bool EndArray(rapidjson::SizeType) {
    // After a trailing comma, the event comes before the bracket is consumed.
    const size_t end = text_[position() - 1] == ']' ? position() : position() + 1;
    JsonValue& array = *open_.back().value;
    array.list = text_.substr(open_.back().start, end - open_.back().start);
    return Close();
  }

 private:
  struct Container {
    JsonValue* value;
    size_t start;
    size_t members;                        // before it
    std::unordered_set<std::string> keys;  // of an object
    JsonValue element;  // the last one of an array: visited, and parsed again only if needed
  };

  bool Fail(size_t length, std::string sentence) {
    failure_ = std::move(sentence);
    failure_at_ = position() - length;
    return false;
  }

  // The length of the string that ends here, with its quotes and escapes: an escaped quote follows an odd
  // number of backslashes.
  size_t WrittenLength() const {
    for (size_t start = position() - 1;;) {
      start = text_.rfind('"', start - 1);
      size_t backslashes = 0;
      while (backslashes < start && text_[start - backslashes - 1] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return position() - start;
    }
  }

  bool CheckString(std::string_view text, size_t written) {
    if (text.size() > kMaxStringBytes)
      return Fail(written, StrCat("a string of more than ", kMaxStringBytes, " bytes"));
    // RapidJSON accepts the second half of a surrogate pair without the first: in UTF-8, ED followed by A0 or
    // more.
    for (size_t at = text.find('\xED'); at != std::string_view::npos; at = text.find('\xED', at + 1)) {
      if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0)
        return Fail(written, "half of a surrogate pair");
    }
    return true;
  }

  // The place for the value that begins `length` bytes before this position.
  JsonValue* Place(JsonValue::Kind kind, size_t length) {
    JsonValue* value = &root_;
    if (!open_.empty()) {
      Container& parent = open_.back();
      const bool in_array = parent.value->kind == JsonValue::Kind::kArray;
      value = in_array ? &parent.element : &parent.value->elements.emplace_back();
    }
    const size_t start = position() - length;
    places_.Go(start);
    value->kind = kind;
    value->line = places_.line();
    value->column = places_.ColumnOf(start);
    value->text.clear();
    value->list = {};
    value->elements.clear();
    value->keys.clear();
    return value;
  }

  bool Scalar(JsonValue::Kind kind, std::string_view text, size_t length) {
    JsonValue* const value = Place(kind, length);
    value->text = text;
    return Finished(*value);
  }

  bool Open(JsonValue::Kind kind) {
    if (open_.size() > kMaxDepth) return Fail(1, StrCat("nested more than ", kMaxDepth, " levels deep"));
    JsonValue* const value = Place(kind, 1);
    if (kind == JsonValue::Kind::kObject) ++objects_;
    open_.push_back({value, position() - 1, members_, {}, {}});
    return true;
  }

  bool Close() {
    const JsonValue& value = *open_.back().value;
    if (value.kind == JsonValue::Kind::kObject) --objects_;
    open_.pop_back();
    // Elements of arrays are not kept.
    if (!open_.empty() && open_.back().value->kind == JsonValue::Kind::kArray)
      members_ = open_.back().members;
    return Finished(value);
  }

  // Calls the visitor for values that it wants.
  bool Finished(const JsonValue& value) {
    if (visited_ == Visited::kElements) return open_.size() != 1 || visit_(value);
    if (visited_ == Visited::kNothing || objects_ > 0 || value.kind == JsonValue::Kind::kArray) return true;
    return visit_(value);
  }

  const std::string_view text_;
  rapidjson::MemoryStream stream_;
  Places places_;
  const Visited visited_;
  const JsonVisit& visit_;
  JsonValue root_;
  std::vector<Container> open_;
  size_t objects_ = 0;  // of those
  size_t members_ = 0;
  std::string failure_;
  size_t failure_at_ = 0;
};

// RapidJSON's codes as messages.
class Failure {
 public:
  Failure(std::string_view name, std::string_view text, size_t start)
      : name_(name), text_(text), start_(start) {}

  Status At(size_t offset, std::string_view sentence) const {
    Places places(text_, 1, static_cast<ptrdiff_t>(start_));
    places.Go(offset);
    return InvalidArgument(name_, ":", places.line(), ":", places.ColumnOf(offset), ": ", sentence);
  }

  Status Unexpected(size_t offset, std::string_view expected) const {
    if (offset >= text_.size())
      return At(text_.size(), StrCat("found the end of the file, expected ", expected));
    size_t length = 1;  // a whole word if there is one
    if (IsWord(text_[offset])) {
      while (offset + length < text_.size() && IsWord(text_[offset + length])) ++length;
    }
    return At(offset, StrCat("found '", Printable(text_.substr(offset, length)), "', expected ", expected));
  }

  // `offset` is the error's position, `position` is how far the reader came.
  Status Of(rapidjson::ParseErrorCode code, size_t offset, size_t position) const {
    switch (code) {
      case rapidjson::kParseErrorDocumentRootNotSingular:
        return Unexpected(offset, "the end of the file");
      case rapidjson::kParseErrorObjectMissName:
        return Unexpected(offset, "a key in double quotes or '}'");
      case rapidjson::kParseErrorObjectMissColon:
        return Unexpected(offset, "':' after the key");
      case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
        return Unexpected(offset, "',' or '}'");
      case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
        return Unexpected(offset, "',' or ']'");
      case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
        return Unexpected(position, "four hexadecimal digits after \\u");
      case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
        return At(position, "half of a surrogate pair");
      case rapidjson::kParseErrorStringEscapeInvalid:
        if (text_[offset] == '\\') return Unexpected(offset + 1, "one of \"\\/bfnrtu after a backslash");
        return At(offset, "a string holds a line break or control character; write it as an escape (\\n)");
      case rapidjson::kParseErrorStringMissQuotationMark:
        return Unexpected(offset, "the end of a string");
      case rapidjson::kParseErrorNumberTooBig:
        return At(offset, "a number beyond the largest of 64 bits (1.8e308)");
      case rapidjson::kParseErrorNumberMissFraction:
      case rapidjson::kParseErrorNumberMissExponent:
        return Unexpected(offset, "a digit");
      case rapidjson::kParseErrorUnspecificSyntaxError:
        return Comment(offset);
      default:
        return Value(offset);
    }
  }

 private:
  // Points to the beginning of a word, although the reader is inside it.
  Status Value(size_t offset) const {
    while (offset > start_ && IsWord(text_[offset - 1])) --offset;
    return Unexpected(offset, offset > start_ && text_[offset - 1] == '-' ? "a digit" : "a value");
  }

  Status Comment(size_t offset) const {
    const size_t begin = text_.rfind("/*");
    if (offset == text_.size() && begin != std::string_view::npos && begin + 1 < offset)
      return At(begin, "this comment has no end");
    return Unexpected(offset - 1, "a value or a comment");
  }

  const std::string_view name_, text_;
  const size_t start_;
};

void Visit(const JsonValue& array, Builder::Visited visited, const JsonVisit& visit) {
  if (array.list.empty()) return;
  const Places start(array.list, array.line, 1 - static_cast<ptrdiff_t>(array.column));
  Builder(array.list, 0, start, visited, visit).Parse();  // has been parsed before
}

}  // namespace

std::string Describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return value.text;
    case JsonValue::Kind::kNumber:
      return StrCat("the number ", Printable(value.text));
    case JsonValue::Kind::kString:
      return StrCat("the string '", Printable(value.text), "'");
    case JsonValue::Kind::kArray:
      return "an array";
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "nothing";
}

void VisitElements(const JsonValue& array, const JsonVisit& visit) {
  Visit(array, Builder::Visited::kElements, visit);
}

void VisitLeaves(const JsonValue& array, const JsonVisit& visit) {
  Visit(array, Builder::Visited::kLeaves, visit);
}

size_t CountElements(const JsonValue& array) {
  size_t count = 0;
  VisitElements(array, [&count](const JsonValue&) {
    ++count;
    return true;
  });
  return count;
}

Status ParseJson(std::string_view name, std::string_view text, JsonValue* out) {
  *out = JsonValue();
  const size_t start = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // after the byte order mark
  const Failure failure(name, text, start);
  Builder builder(text, start, Places(text, 1, static_cast<ptrdiff_t>(start)));
  const rapidjson::ParseResult result = builder.Parse();
  if (!builder.failure().empty()) return failure.At(builder.failure_at(), builder.failure());
  if (result.IsError()) return failure.Of(result.Code(), result.Offset(), builder.position());
  // RapidJSON treats a NUL in the text as its end.
  if (builder.position() != text.size()) return failure.Unexpected(builder.position(), "the end of the file");
  *out = std::move(builder.root());
  return {};
}

}  // namespace anydml::client
