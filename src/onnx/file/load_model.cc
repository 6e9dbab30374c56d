// Loads models from files. Nothing outside the model's folder is read.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/open_in_folder.h"
#include "onnx/file/model.h"

namespace anydml::onnx {
namespace {

// A mapping of a whole file. Pages are read when they are touched and dropped under memory pressure.
class Mapping {
 public:
  Mapping(void* memory, size_t size) : memory_(memory), size_(size) {}
  ~Mapping() { munmap(memory_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  Bytes bytes() const { return {static_cast<const std::byte*>(memory_), size_}; }

 private:
  void* const memory_;
  const size_t size_;
};

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

// O_NONBLOCK: does not wait for the writer of a pipe.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// `file` is -1, and errno says why, where it could not be opened.
Status Map(const std::string& path, const FileDescriptor& file, Blob* out) {
  struct stat facts {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0) {
    return InvalidArgument(path, ": ", std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) return InvalidArgument(path, ": not a file");
  if (facts.st_size == 0) return InvalidArgument(path, ": the file is empty");
  const auto size = static_cast<size_t>(facts.st_size);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return InvalidArgument(path, ": ", std::strerror(errno));
  const auto mapping = std::make_shared<const Mapping>(memory, size);
  *out = {mapping->bytes(), mapping, true};
  return {};
}

class FolderFiles final : public ExternalFiles {
 public:
  explicit FolderFiles(const std::filesystem::path& model) : folder_(model.parent_path()) {}

  Status Open(const std::string& location, Blob* out) override {
    if (const auto found = files_.find(location); found != files_.end()) {
      *out = found->second;
      return {};
    }
    std::filesystem::path folder, path;
    ANYDML_RETURN_IF_ERROR(Resolve(location, &folder, &path));
    const FileDescriptor file(OpenInFolder(folder, path, kReadFlags));
    ANYDML_RETURN_IF_ERROR(Map(path.string(), file, out));
    files_[location] = *out;
    return {};
  }

 private:
  // Resolves links: a model's folder may itself be a link, but a file in it must not lead outside.
  Status Resolve(const std::string& location, std::filesystem::path* folder,
                 std::filesystem::path* out) const {
    std::error_code error;
    const std::filesystem::path given(location);
    if (location.empty() || given.is_absolute() || location.find('\0') != std::string::npos) {
      return InvalidArgument("external data in \"", location.substr(0, 80),
                             "\"; a path relative to the model is allowed");
    }
    *folder = std::filesystem::canonical(folder_.empty() ? std::filesystem::path(".") : folder_, error);
    if (error) return InvalidArgument("the model's folder cannot be found: ", error.message());
    *out = std::filesystem::canonical(*folder / given, error);
    if (error) return InvalidArgument("external data \"", location.substr(0, 80), "\": ", error.message());
    if (std::mismatch(folder->begin(), folder->end(), out->begin(), out->end()).first == folder->end())
      return {};
    return InvalidArgument("external data in \"", location.substr(0, 80),
                           "\", which is outside of the model's folder");
  }

  const std::filesystem::path folder_;
  std::map<std::string, Blob> files_;
};

}  // namespace

Status MapFile(const std::string& path, Blob* out) {
  return Map(path, FileDescriptor(open(path.c_str(), kReadFlags)), out);
}

void DropPages(const Tensor& tensor) {
  if (!tensor.mapped || tensor.data.empty()) return;
  // Including partial pages at the ends, which share data with others: these are in the file, too.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(tensor.data.data() + tensor.data.size());
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // a hint: if it is refused, only
                                                                        // memory is lost
}

Status LoadModel(const std::string& path, Model* out) {
  Blob file;
  ANYDML_RETURN_IF_ERROR(MapFile(path, &file));
  FolderFiles external{std::filesystem::path(path)};
  const Status status = ReadModel(file, &external, out);
  if (status.ok()) return {};
  constexpr std::string_view kPointer = "version https://git-lfs";
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.starts_with(kPointer))
    return InvalidArgument(path, ": a pointer of Git LFS, not the model; `git lfs pull` brings that");
  return Status(status.code(), StrCat(path, ": ", status.message()));
}

}  // namespace anydml::onnx
