// A result code with a message that explains it. Codes have the numeric values of the HRESULTs that they
// become at the COM border, so that nothing is translated there. This header needs no Windows types, so
// kernels may use it.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

namespace anydml {

enum class Code : uint32_t {
  kOk = 0,
  kInvalidArgument = 0x80070057,  // E_INVALIDARG
  kOutOfMemory = 0x8007000E,      // E_OUTOFMEMORY
  kFail = 0x80004005,             // E_FAIL
  kNotImplemented = 0x80004001,   // E_NOTIMPL
  kNoInterface = 0x80004002,      // E_NOINTERFACE
  kPointer = 0x80004003,          // E_POINTER
  kInvalidCall = 0x887A0001,      // DXGI_ERROR_INVALID_CALL
  kNotFound = 0x887A0002,         // DXGI_ERROR_NOT_FOUND
  kMoreData = 0x887A0003,         // DXGI_ERROR_MORE_DATA
  kUnsupported = 0x887A0004,      // DXGI_ERROR_UNSUPPORTED
  kDeviceRemoved = 0x887A0005,    // DXGI_ERROR_DEVICE_REMOVED
  kDeviceHung = 0x887A0006,       // DXGI_ERROR_DEVICE_HUNG
  kDriverInternal = 0x887A0020,   // DXGI_ERROR_DRIVER_INTERNAL_ERROR
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Concatenates anything that can be streamed; for messages only.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream stream;
  (stream << ... << args);
  return std::move(stream).str();
}

template <typename... Args>
Status InvalidArgument(const Args&... args) {
  return Status(Code::kInvalidArgument, StrCat(args...));
}

}  // namespace anydml

#define ANYDML_RETURN_IF_ERROR(expression) \
  if (::anydml::Status status_ = (expression); !status_.ok()) return status_
