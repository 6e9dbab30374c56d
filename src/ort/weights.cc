#include "ort/weights.h"

#include <filesystem>
#include <memory>

namespace anydml::ort {

Status Weights::Map(const GraphValue& value, onnx::Tensor* out, bool* found) {
  OrtExternalInitializerInfo* info = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kValueInfoGetExternalInitializerInfo, value.info, &info));
  if (info == nullptr) return {};
  const auto release = [this](OrtExternalInitializerInfo* given) {
    api_.Call(kReleaseExternalInitializerInfo, given);
  };
  const std::unique_ptr<OrtExternalInitializerInfo, decltype(release)> owned(info, release);
  const char* model = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kGraphGetModelPath, graph_, &model));
  if (model == nullptr || *model == '\0') return {};  // models that are in memory have no files
  const std::string path = std::filesystem::path(model)
                               .parent_path()
                               .append(api_.Call(kExternalInitializerInfoGetFilePath, info))
                               .string();
  onnx::Blob& file = files_[path];
  if (!file.owner && !onnx::MapFile(path, &file).ok()) return {};
  const int64_t offset = api_.Call(kExternalInitializerInfoGetFileOffset, info);
  const size_t bytes = api_.Call(kExternalInitializerInfoGetByteSize, info);
  if (offset < 0 || static_cast<uint64_t>(offset) > file.bytes.size() ||
      bytes > file.bytes.size() - static_cast<uint64_t>(offset) ||
      onnx::PackedBytes(value.facts.type, value.facts.shape) != bytes) {
    return {};
  }
  *out = {value.facts.type, value.facts.shape, file.bytes.subspan(static_cast<size_t>(offset), bytes),
          file.owner, file.mapped};
  *found = true;
  return {};
}

Status Weights::Take(const GraphValue& value, onnx::Tensor* out) {
  bool mapped = false;
  ANYDML_RETURN_IF_ERROR(Map(value, out, &mapped));
  if (mapped) return {};
  onnx::Tensor theirs;
  ANYDML_RETURN_IF_ERROR(ConstantOf(api_, value, &theirs));
  *out = onnx::MakeTensor(theirs.type, theirs.shape,
                          std::vector<std::byte>(theirs.data.begin(), theirs.data.end()));
  return {};
}

}  // namespace anydml::ort
