// Protocol buffers' wire format, read in place: no generated classes, so that weights are never copied, a
// file may exceed 2 GiB, and the cost of a file is limited here alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace anydml::onnx {

using Bytes = std::span<const std::byte>;

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The fields of one message, one after the other.
class WireReader {
 public:
  explicit WireReader(Bytes message) : rest_(message) {}

  // False at the end, and if the bytes are not a message; `status` tells which.
  bool Next();
  Status status() const;

  uint32_t field() const { return field_; }
  WireType type() const { return type_; }

  // The value, as the schema defines it. Another wire type ends the reading with an error.
  int64_t Int();
  float Float();
  double Double();
  Bytes Message();
  std::string String();

  // Repeated numbers: one value, or many packed ones.
  void Ints(std::vector<int64_t>* out);
  void Floats(std::vector<float>* out);
  void Doubles(std::vector<double>* out);

 private:
  bool Fail(const char* problem);
  bool Expect(WireType type);
  bool Varint(Bytes* from, uint64_t* out);
  template <typename T>
  void Fixed(WireType type, std::vector<T>* out);

  Bytes rest_;
  const char* problem_ = nullptr;
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t number_ = 0;  // of the numeric types
  Bytes bytes_;
};

}  // namespace anydml::onnx
