#include "client/json/json_node.h"

#include <algorithm>
#include <charconv>

#include "client/suggest.h"
#include "client/text.h"

namespace anydml::client {

std::string JsonNode::Path() const {
  return element_ == kNoElement ? path_ : StrCat(path_, "[", element_, "]");
}

std::string JsonNode::Where() const {
  const std::string path = Path();
  return StrCat(*file_, ":", value_->line, ":", value_->column, ": ", path, path.empty() ? "" : ": ");
}

Status JsonNode::At(const Status& status) const {
  if (status.ok()) return status;
  const Code code = status.code() == kBadUsage ? Code::kInvalidArgument : status.code();
  return Status(code, StrCat(Where(), status.message()));
}

Status JsonNode::Expect(Kind kind, std::string_view expected) const {
  if (value_->kind == kind) return {};
  return Error("expected ", expected, ", found ", Describe(*value_));
}

Status JsonNode::ExpectKeys(std::span<const std::string_view> allowed) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kObject, "an object"));
  for (size_t i = 0; i < value_->keys.size(); ++i) {
    const std::string& key = value_->keys[i];
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    std::string list;
    for (const std::string_view name : allowed) list += StrCat(list.empty() ? "" : ", ", name);
    return Member(i).Error("unknown key (allowed: ", list, ")", DidYouMean(key, allowed));
  }
  return {};
}

std::optional<JsonNode> JsonNode::Find(std::string_view key) const {
  const auto found = std::find(value_->keys.begin(), value_->keys.end(), key);
  if (found == value_->keys.end()) return std::nullopt;
  return Member(static_cast<size_t>(found - value_->keys.begin()));
}

Status JsonNode::Require(std::string_view key, std::optional<JsonNode>* out) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kObject, "an object"));
  *out = Find(key);
  return *out ? Status() : Error(key, " is missing");
}

JsonNode JsonNode::Member(size_t index) const {
  const std::string path = Path();
  return {*file_, value_->elements[index],
          StrCat(path, path.empty() ? "" : ".", Printable(value_->keys[index]))};
}

Status JsonNode::Get(std::string* out) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kString, "a string"));
  *out = value_->text;
  // Names and paths: the system would see only the part before it.
  return out->find('\0') == std::string::npos ? Status() : Error("the string holds a NUL character");
}

Status JsonNode::Get(bool* out) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kBool, "true or false"));
  *out = value_->text == "true";
  return {};
}

template <typename T>
Status JsonNode::GetNumber(std::string_view expected, T* out) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kNumber, expected));
  const char* const end = value_->text.data() + value_->text.size();
  const std::from_chars_result result = std::from_chars(value_->text.data(), end, *out);
  if (result.ec == std::errc() && result.ptr == end) return {};
  return Error("expected ", expected, ", found ", Describe(*value_));
}

Status JsonNode::Get(uint32_t* out) const { return GetNumber("an integer in [0, 2^32)", out); }
Status JsonNode::Get(uint64_t* out) const { return GetNumber("an integer in [0, 2^64)", out); }
Status JsonNode::Get(double* out) const { return GetNumber("a number", out); }

Status JsonNode::Get(std::vector<uint32_t>* out) const {
  ANYDML_RETURN_IF_ERROR(Expect(Kind::kArray, "an array of integers"));
  out->clear();
  return ForEach([out](const JsonNode& node) { return node.Get(&out->emplace_back()); });
}

Status JsonNode::GetNumberText(std::string_view* out) const {
  constexpr std::string_view kSpecial[] = {"nan", "inf", "-inf"};
  *out = value_->text;
  const bool special = kind() == Kind::kString &&
                       std::any_of(std::begin(kSpecial), std::end(kSpecial),
                                   [out](std::string_view name) { return EqualIgnoringCase(*out, name); });
  return special ? Status() : Expect(Kind::kNumber, "a number, \"nan\", \"inf\" or \"-inf\"");
}

}  // namespace anydml::client
