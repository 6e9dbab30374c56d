// The paths in a model.
#include <algorithm>
#include <climits>

#include "anydml/model/model_parts.h"
#include "anydml/model/resolve_links.h"
#include "client/suggest.h"
#include "client/text.h"

namespace anydml::client {
namespace {

namespace fs = std::filesystem;

Status GetPath(const JsonNode& node, std::string* given) {
  ANYDML_RETURN_IF_ERROR(node.Get(given));
  if (given->size() >= PATH_MAX) {
    return node.Error("a path of ", given->size(), " bytes; there are none of ", PATH_MAX, " and more");
  }
  std::replace(given->begin(), given->end(), '\\', '/');
  return {};
}

// `root` and `target`: the folder and the file, resolved.
Status CheckInside(const JsonNode& node, const std::string& given, const fs::path& folder, fs::path* root,
                   fs::path* target) {
  ANYDML_RETURN_IF_ERROR(node.At(ResolveLinks(folder, root)));
  ANYDML_RETURN_IF_ERROR(node.At(ResolveLinks(folder / given, target)));
  if (std::mismatch(root->begin(), root->end(), target->begin(), target->end()).first == root->end())
    return {};
  return node.Error("'", Printable(given),
                    "' leads outside of the model's folder; --allow-outside permits it");
}

}  // namespace

Status ResolveTarget(const JsonNode& node, const ModelFolder& folder, std::string* path) {
  std::string given;
  ANYDML_RETURN_IF_ERROR(GetPath(node, &given));
  *path = (folder.path / given).string();
  fs::path root, target;
  return folder.allow_outside ? Status() : CheckInside(node, given, folder.path, &root, &target);
}

Status ResolveSource(const JsonNode& node, const ModelFolder& folder, InputPath* path) {
  std::string given;
  ANYDML_RETURN_IF_ERROR(GetPath(node, &given));
  const fs::path beside = folder.path / given;
  path->path = beside.string();
  if (!folder.allow_outside) return CheckInside(node, given, folder.path, &path->folder, &path->resolved);
  std::error_code error;
  if (!fs::exists(beside, error) && fs::exists(given, error)) path->path = given;
  return {};
}

bool HasExtension(const std::string& path, std::string_view extension) {
  return EqualIgnoringCase(fs::path(path).extension().string(), extension);
}

bool IsImage(const std::string& path) { return HasExtension(path, ".jpg") || HasExtension(path, ".png"); }

}  // namespace anydml::client
