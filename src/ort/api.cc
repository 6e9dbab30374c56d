#include "ort/api.h"

namespace anydml::ort {

Status Api::FromOrt(OrtStatus* status) const {
  if (status == nullptr) return {};
  const OrtErrorCode code = Call(kGetErrorCode, status);
  Status result(code == kOrtInvalidArgument  ? Code::kInvalidArgument
                : code == kOrtNotImplemented ? Code::kUnsupported
                                             : Code::kFail,
                Call(kGetErrorMessage, status));
  Call(kReleaseStatus, status);
  return result;
}

OrtStatus* Api::ToOrt(const Status& status) const {
  if (status.ok()) return nullptr;
  const OrtErrorCode code = status.code() == Code::kInvalidArgument ? kOrtInvalidArgument
                            : status.code() == Code::kUnsupported   ? kOrtNotImplemented
                                                                    : kOrtEpFail;
  return Call(kCreateStatus, code, StrCat("AnyDML: ", status.message()).c_str());
}

Status Api::TensorOf(const OrtValue* value, onnx::Tensor* out) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ANYDML_RETURN_IF_ERROR(Try(kGetTensorTypeAndShape, value, &info));
  int32_t type = 0;
  size_t rank = 0;
  Status status = Try(kGetTensorElementType, info, &type);
  if (status.ok()) status = Try(kGetDimensionsCount, info, &rank);
  out->shape.resize(rank);
  if (status.ok() && rank > 0) status = Try(kGetDimensions, info, out->shape.data(), rank);
  Call(kReleaseTensorTypeAndShapeInfo, info);
  ANYDML_RETURN_IF_ERROR(status);
  out->type = static_cast<onnx::ElementType>(type);
  const void* data = nullptr;
  size_t bytes = 0;
  ANYDML_RETURN_IF_ERROR(Try(kGetTensorSizeInBytes, value, &bytes));
  if (bytes > 0) ANYDML_RETURN_IF_ERROR(Try(kGetTensorData, value, &data));
  out->data = {static_cast<const std::byte*>(data), bytes};
  return {};
}

void Api::Log(const OrtLogger* logger, OrtLoggingLevel level, const std::string& sentence) const {
  if (logger == nullptr) return;
  // If the log cannot be written, nothing fails.
  const Status ignored =
      Try(kLoggerLogMessage, logger, level, sentence.c_str(), "libanydml_ort", 0, "AnyDML");
  static_cast<void>(ignored);
}

Values::~Values() {
  for (OrtValue* const value : values) {
    if (value != nullptr) api_.Call(kReleaseValue, value);
  }
}

Status Values::AddOver(const onnx::Tensor& tensor) {
  OrtMemoryInfo* memory = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kCreateCpuMemoryInfo, kOrtDeviceAllocator, 0, &memory));
  Status status = api_.Try(kCreateTensorWithData, memory, const_cast<std::byte*>(tensor.data.data()),
                           tensor.data.size(), tensor.shape.data(), tensor.shape.size(),
                           static_cast<int32_t>(tensor.type), &values.emplace_back());
  api_.Call(kReleaseMemoryInfo, memory);
  return status;
}

}  // namespace anydml::ort
