#include "anydml/model/resolve_links.h"

#include <vector>

namespace anydml::client {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as on Linux

// Prepends the parts of `path` to `rest`, which is in reverse.
void Prepend(const fs::path& path, std::vector<fs::path>* rest) {
  const std::vector<fs::path> parts(path.begin(), path.end());
  rest->insert(rest->end(), parts.rbegin(), parts.rend());
}

}  // namespace

Status ResolveLinks(const fs::path& path, fs::path* out) {
  std::error_code error;
  std::vector<fs::path> rest;
  Prepend(path.is_absolute() ? path : fs::current_path(error) / path, &rest);
  if (error) return Status(Code::kFail, StrCat(path.string(), ": ", error.message()));
  *out = "/";
  for (int links = 0; !rest.empty();) {
    const fs::path part = std::move(rest.back());
    rest.pop_back();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      *out = out->parent_path();
      continue;
    }
    const fs::path next = *out / part;
    const fs::path target = fs::read_symlink(next, error);
    if (error) {  // not a link
      *out = next;
      continue;
    }
    if (++links > kMaxLinks) {
      return Status(Code::kFail, StrCat(path.string(), ": too many levels of symbolic links"));
    }
    if (target.is_absolute()) *out = "/";
    Prepend(target, &rest);
  }
  return {};
}

}  // namespace anydml::client
