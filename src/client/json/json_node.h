// A JSON value with its position, for error messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/exit_status.h"
#include "client/json/json.h"

namespace anydml::client {

// Refers to the file's name and the value; both must outlive it.
class JsonNode {
 public:
  using Kind = JsonValue::Kind;

  static constexpr size_t kNoElement = SIZE_MAX;

  // `element`: its index, if it is an element of the array at `path`.
  JsonNode(const std::string& file, const JsonValue& value, std::string path = "",
           size_t element = kNoElement)
      : file_(&file), value_(&value), path_(std::move(path)), element_(element) {}

  const JsonValue& value() const { return *value_; }
  Kind kind() const { return value_->kind; }

  // "model.json:12:5: dispatchables.top.desc.K: "
  std::string Where() const;

  template <typename... Args>
  Status Error(const Args&... args) const {
    return InvalidArgument(Where(), args...);
  }
  // The same failure, prefixed with the position. An error that is bad usage on the command line is an error
  // in the file here.
  Status At(const Status& status) const;

  Status Expect(Kind kind, std::string_view expected) const;
  // Checks for an object with no keys other than these.
  Status ExpectKeys(std::span<const std::string_view> allowed) const;

  std::optional<JsonNode> Find(std::string_view key) const;
  Status Require(std::string_view key, std::optional<JsonNode>* out) const;
  JsonNode Member(size_t index) const;  // of an object

  // Calls `visit` with each element of an array, until one fails. The elements exist only during the call.
  template <typename Function>
  Status ForEach(const Function& visit) const {
    return Visit(&VisitElements, visit);
  }
  // Likewise with what is in an array and its nested arrays, or with a value that is no array.
  template <typename Function>
  Status ForEachLeaf(const Function& visit) const {
    if (kind() != Kind::kArray) return visit(*this);
    return Visit(&VisitLeaves, visit);
  }

  Status Get(std::string* out) const;
  Status Get(bool* out) const;
  Status Get(uint32_t* out) const;
  Status Get(uint64_t* out) const;
  Status Get(double* out) const;
  Status Get(std::vector<uint32_t>* out) const;

  // Leaves `out` unchanged if the key is missing.
  template <typename T>
  Status GetOptional(std::string_view key, T* out) const {
    const std::optional<JsonNode> node = Find(key);
    return node ? node->Get(out) : Status();
  }
  template <typename T>
  Status GetRequired(std::string_view key, T* out) const {
    std::optional<JsonNode> node;
    ANYDML_RETURN_IF_ERROR(Require(key, &node));
    return node->Get(out);
  }

  // A number as written; floats may also be the strings "nan", "inf" and "-inf".
  Status GetNumberText(std::string_view* out) const;

 private:
  using Walk = void (*)(const JsonValue& array, const JsonVisit& visit);
  template <typename Function>
  Status Visit(Walk walk, const Function& visit) const {
    Status status;
    const std::string path = Path();
    size_t index = 0;
    walk(*value_, [&](const JsonValue& element) {
      status = visit(JsonNode(*file_, element, path, index++));
      return status.ok();
    });
    return status;
  }
  template <typename T>
  Status GetNumber(std::string_view expected, T* out) const;
  std::string Path() const;  // "dispatchables.top.desc.K"

  const std::string* file_;
  const JsonValue* value_;
  std::string path_;
  size_t element_;
};

}  // namespace anydml::client
