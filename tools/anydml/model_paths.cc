// The files that a model names.
#include <algorithm>

#include "anydml/model_parts.h"
#include "anydml/suggest.h"

namespace anydml::tools {

std::string NativePath(std::string path) {
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

std::string ResolveInput(const std::filesystem::path& folder, const std::string& given) {
  const std::string path = NativePath(given);
  const std::filesystem::path beside = folder / path;
  std::error_code error;
  const bool elsewhere = !std::filesystem::exists(beside, error) && std::filesystem::exists(path, error);
  return elsewhere ? path : beside.string();
}

bool HasExtension(const std::string& path, std::string_view extension) {
  return EqualIgnoringCase(std::filesystem::path(path).extension().string(), extension);
}

bool IsImage(const std::string& path) { return HasExtension(path, ".jpg") || HasExtension(path, ".png"); }

}  // namespace anydml::tools
