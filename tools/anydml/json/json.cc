#include "anydml/json/json.h"

#include <unordered_set>

#include "anydml/cli/text.h"

namespace anydml::tools {
namespace {

// The parser and the destructor of values recurse.
constexpr int kMaxDepth = 64;
// That are in memory at once: those of an object, and of the objects in it but for those in arrays.
constexpr size_t kMaxMembers = size_t{1} << 18;
constexpr size_t kMaxStringBytes = size_t{1} << 16;
constexpr std::string_view kSpace = " \t\r\n";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsWord(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// -1 when it is none.
int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  *out += static_cast<char>(kLead[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) *out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

// Every step looks at what is left first, so no input can lead it outside the text.
class Parser {
 public:
  Parser(std::string_view name, JsonCursor* cursor) : name_(name), cursor_(*cursor) {}

  Status Parse(JsonValue* out) {
    if (text_.starts_with("\xEF\xBB\xBF"))
      line_start_ = static_cast<ptrdiff_t>(position_ = 3);  // byte order mark
    ANYDML_RETURN_IF_ERROR(Value(0, out));
    ANYDML_RETURN_IF_ERROR(SkipSpace());
    return AtEnd() ? Status() : Unexpected("the end of the file");
  }

  // The value after what may be skipped, in a text that was parsed before; false at its end.
  bool Next(std::string_view skipped, JsonValue* out) {
    for (;;) {
      if (!SkipSpace().ok() || AtEnd()) return false;
      if (skipped.find(Peek()) == std::string_view::npos) break;
      Advance();
    }
    return Peek() != ']' && Value(0, out).ok();
  }

 private:
  bool AtEnd() const { return position_ == text_.size(); }
  // 0 at the end; a 0 in the text is an error wherever it stands.
  char Peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  void Advance() {
    if (text_[position_++] != '\n') return;
    ++line_;
    line_start_ = static_cast<ptrdiff_t>(position_);
  }

  uint32_t Column() const {
    return static_cast<uint32_t>(static_cast<ptrdiff_t>(position_) - line_start_ + 1);
  }

  bool Take(char c) {
    if (AtEnd() || Peek() != c) return false;
    Advance();
    return true;
  }

  template <typename... Args>
  Status Error(const Args&... args) const {
    return InvalidArgument(name_, ":", line_, ":", Column(), ": ", args...);
  }

  Status Unexpected(std::string_view expected) const {
    if (AtEnd()) return Error("found the end of the file, expected ", expected);
    size_t length = 1;  // a whole word where there is one
    if (IsWord(Peek())) {
      while (IsWord(Peek(length))) ++length;
    }
    return Error("found '", Printable(text_.substr(position_, length)), "', expected ", expected);
  }

  // And comments.
  Status SkipSpace() {
    while (!AtEnd()) {
      if (Peek() == '/') {
        ANYDML_RETURN_IF_ERROR(SkipComment());
      } else if (kSpace.find(Peek()) != std::string_view::npos) {
        Advance();
      } else {
        break;
      }
    }
    return {};
  }

  Status SkipComment() {
    if (Peek(1) == '/') {
      while (!AtEnd() && Peek() != '\n') Advance();
      return {};
    }
    if (Peek(1) != '*') return Unexpected("a value or a comment");
    const size_t end = text_.find("*/", position_ + 2);
    if (end == std::string_view::npos) return Error("this comment has no end");
    while (position_ < end + 2) Advance();
    return {};
  }

  Status Value(int depth, JsonValue* out) {
    // One after the other may be read into the same value.
    out->text.clear();
    out->list = {};
    out->elements.clear();
    out->keys.clear();
    ANYDML_RETURN_IF_ERROR(SkipSpace());
    out->line = line_;
    out->column = Column();
    if (depth > kMaxDepth) return Error("nested more than ", kMaxDepth, " levels deep");
    switch (Peek()) {
      case '{':
        return Object(depth, out);
      case '[':
        return Array(depth, out);
      case '"':
        out->kind = JsonValue::Kind::kString;
        return String(&out->text);
      default:
        return Peek() == '-' || IsDigit(Peek()) ? Number(out) : Word(out);
    }
  }

  Status Word(JsonValue* out) {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      out->kind = word == "null" ? JsonValue::Kind::kNull : JsonValue::Kind::kBool;
      out->text = word;
      position_ += word.size();
      return {};
    }
    return Unexpected("a value");
  }

  Status Digits() {
    if (!IsDigit(Peek())) return Unexpected("a digit");
    while (IsDigit(Peek())) Advance();
    return {};
  }

  Status Number(JsonValue* out) {
    const size_t start = position_;
    Take('-');
    if (!Take('0')) ANYDML_RETURN_IF_ERROR(Digits());
    if (Take('.')) ANYDML_RETURN_IF_ERROR(Digits());
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      ANYDML_RETURN_IF_ERROR(Digits());
    }
    out->kind = JsonValue::Kind::kNumber;
    out->text = text_.substr(start, position_ - start);
    return {};
  }

  Status String(std::string* out) {
    Advance();  // the quote
    while (!Take('"')) {
      if (AtEnd()) return Unexpected("the end of a string");
      if (out->size() >= kMaxStringBytes) return Error("a string of more than ", kMaxStringBytes, " bytes");
      if (static_cast<unsigned char>(Peek()) < ' ') {
        return Error("a string holds a line break or control character; write it as an escape (\\n)");
      }
      if (Peek() == '\\') {
        ANYDML_RETURN_IF_ERROR(Escape(out));
      } else {
        *out += Peek();
        Advance();
      }
    }
    return {};
  }

  Status Escape(std::string* out) {
    Advance();  // the backslash
    if (Take('u')) return UnicodeEscape(out);
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t index = AtEnd() ? std::string_view::npos : kNames.find(Peek());
    if (index == std::string_view::npos) return Unexpected("one of \"\\/bfnrtu after a backslash");
    *out += kMeanings[index];
    Advance();
    return {};
  }

  Status HexNumber(uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = HexDigit(Peek());
      if (digit < 0) return Unexpected("four hexadecimal digits after \\u");
      *code = *code << 4 | static_cast<uint32_t>(digit);
      Advance();
    }
    return {};
  }

  Status UnicodeEscape(std::string* out) {
    uint32_t code = 0;
    ANYDML_RETURN_IF_ERROR(HexNumber(&code));
    if (code >> 10 == 0xD800 >> 10 && Peek() == '\\' && Peek(1) == 'u') {
      Advance();
      Advance();
      uint32_t low = 0;
      ANYDML_RETURN_IF_ERROR(HexNumber(&low));
      if (low >> 10 != 0xDC00 >> 10) return Error("half of a surrogate pair");
      code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    }
    if (code >> 11 == 0xD800 >> 11) return Error("half of a surrogate pair");
    AppendUtf8(code, out);
    return {};
  }

  Status Array(int depth, JsonValue* out) {
    out->kind = JsonValue::Kind::kArray;
    const size_t start = position_, members = members_;
    Advance();          // the bracket
    JsonValue element;  // looked at, and parsed again when somebody wants it
    for (;;) {
      ANYDML_RETURN_IF_ERROR(SkipSpace());
      if (Take(']')) {
        out->list = text_.substr(start, position_ - start);
        return {};
      }
      ANYDML_RETURN_IF_ERROR(Value(depth + 1, &element));
      members_ = members;
      ANYDML_RETURN_IF_ERROR(SkipSpace());
      if (!Take(',') && Peek() != ']') return Unexpected("',' or ']'");
    }
  }

  Status Object(int depth, JsonValue* out) {
    out->kind = JsonValue::Kind::kObject;
    Advance();  // the brace
    std::unordered_set<std::string> keys;
    for (;;) {
      ANYDML_RETURN_IF_ERROR(SkipSpace());
      if (Take('}')) return {};
      if (Peek() != '"') return Unexpected("a key in double quotes or '}'");
      std::string& key = out->keys.emplace_back();
      ANYDML_RETURN_IF_ERROR(String(&key));
      if (!keys.insert(key).second) return Error("the key '", Printable(key), "' is given twice");
      if (++members_ > kMaxMembers)
        return Error("more than ", kMaxMembers, " keys; large data belongs into files");
      ANYDML_RETURN_IF_ERROR(SkipSpace());
      if (!Take(':')) return Unexpected("':' after the key");
      ANYDML_RETURN_IF_ERROR(Value(depth + 1, &out->elements.emplace_back()));
      ANYDML_RETURN_IF_ERROR(SkipSpace());
      if (!Take(',') && Peek() != '}') return Unexpected("',' or '}'");
    }
  }

  const std::string_view name_;
  JsonCursor& cursor_;
  const std::string_view text_ = cursor_.text;
  size_t& position_ = cursor_.position;
  uint32_t& line_ = cursor_.line;
  ptrdiff_t& line_start_ = cursor_.line_start;
  size_t members_ = 0;
};

// At the bracket that opens the array, which is where the array says it is.
JsonCursor Inside(const JsonValue& array) {
  return {array.list, array.list.empty() ? size_t{0} : 1, array.line,
          1 - static_cast<ptrdiff_t>(array.column)};
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

JsonElements::JsonElements(const JsonValue& array) : cursor_(Inside(array)) {}

bool JsonElements::Next(JsonValue* element) { return Parser("", &cursor_).Next(",", element); }

JsonLeaves::JsonLeaves(const JsonValue& array) : cursor_(Inside(array)) {}

bool JsonLeaves::Next(JsonValue* leaf) { return Parser("", &cursor_).Next(",[]", leaf); }

size_t CountElements(const JsonValue& array) {
  size_t count = 0;
  JsonElements elements(array);
  for (JsonValue element; elements.Next(&element);) ++count;
  return count;
}

Status ParseJson(std::string_view name, std::string_view text, JsonValue* out) {
  *out = JsonValue();
  JsonCursor cursor{text};
  return Parser(name, &cursor).Parse(out);
}

}  // namespace anydml::tools
