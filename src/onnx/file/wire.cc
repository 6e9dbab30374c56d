#include "onnx/file/wire.h"

#include <bit>
#include <cstring>

namespace anydml::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed numbers are read as they lie");

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

bool WireReader::Fail(const char* problem) {
  if (problem_ == nullptr) problem_ = problem;
  rest_ = {};
  return false;
}

Status WireReader::status() const {
  if (problem_ == nullptr) return {};
  return InvalidArgument("field ", field_, ": ", problem_);
}

bool WireReader::Varint(Bytes* from, uint64_t* out) {
  uint64_t value = 0;
  for (size_t i = 0; i < 10; ++i) {
    if (i == from->size()) return Fail("a number is cut off");
    const auto byte = static_cast<uint8_t>((*from)[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      *from = from->subspan(i + 1);
      *out = value;
      return true;
    }
  }
  return Fail("a number has more than ten bytes");
}

bool WireReader::Next() {
  if (rest_.empty()) return false;
  uint64_t tag = 0;
  if (!Varint(&rest_, &tag)) return false;
  if (tag >> 32 != 0 || tag >> 3 == 0) return Fail("a tag that no field has");
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  switch (type_) {
    case WireType::kVarint:
      return Varint(&rest_, &number_);
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const size_t size = type_ == WireType::kFixed64 ? 8 : 4;
      if (rest_.size() < size) return Fail("a number is cut off");
      number_ = size == 8 ? Load<uint64_t>(rest_.data()) : Load<uint32_t>(rest_.data());
      rest_ = rest_.subspan(size);
      return true;
    }
    case WireType::kBytes: {
      uint64_t size = 0;
      if (!Varint(&rest_, &size)) return false;
      if (size > rest_.size()) return Fail("it is longer than what contains it");
      bytes_ = rest_.first(size);
      rest_ = rest_.subspan(size);
      return true;
    }
  }
  return Fail("a wire type that ONNX does not use");
}

bool WireReader::Expect(WireType type) {
  return problem_ == nullptr && (type_ == type || Fail("another wire type than the field has"));
}

int64_t WireReader::Int() { return Expect(WireType::kVarint) ? static_cast<int64_t>(number_) : 0; }

float WireReader::Float() {
  return Expect(WireType::kFixed32) ? std::bit_cast<float>(static_cast<uint32_t>(number_)) : 0;
}

double WireReader::Double() { return Expect(WireType::kFixed64) ? std::bit_cast<double>(number_) : 0; }

Bytes WireReader::Message() { return Expect(WireType::kBytes) ? bytes_ : Bytes(); }

std::string WireReader::String() {
  const Bytes bytes = Message();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void WireReader::Ints(std::vector<int64_t>* out) {
  if (type_ != WireType::kBytes) {
    const int64_t value = Int();
    if (problem_ == nullptr) out->push_back(value);
    return;
  }
  Bytes packed = bytes_;
  uint64_t value = 0;
  while (!packed.empty() && Varint(&packed, &value)) out->push_back(static_cast<int64_t>(value));
}

template <typename T>
void WireReader::Fixed(WireType type, std::vector<T>* out) {
  if (type_ != WireType::kBytes) {
    if (!Expect(type)) return;
    if constexpr (sizeof(T) == 8) {
      out->push_back(std::bit_cast<T>(number_));
    } else {
      out->push_back(std::bit_cast<T>(static_cast<uint32_t>(number_)));
    }
    return;
  }
  if (bytes_.size() % sizeof(T) != 0) {
    Fail("packed numbers are cut off");
    return;
  }
  const size_t before = out->size();
  out->resize(before + bytes_.size() / sizeof(T));
  if (!bytes_.empty()) std::memcpy(out->data() + before, bytes_.data(), bytes_.size());
}

void WireReader::Floats(std::vector<float>* out) { Fixed(WireType::kFixed32, out); }
void WireReader::Doubles(std::vector<double>* out) { Fixed(WireType::kFixed64, out); }

}  // namespace anydml::onnx
