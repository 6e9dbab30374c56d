// Output files that appear completely or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schema/tensor_desc.h"

namespace anydml::client {

// From now on a signal that ends the process (Ctrl-C, a closed terminal, kill) first removes
// the temporary files of all OutputFiles. To be called before there are other threads. Fails, and changes
// nothing, where the system lets it have no thread.
Status RemoveTemporaryFilesOnSignals();

// The next Ctrl-C calls `handler`, in another thread, instead of ending the process; null restores the
// default.
void OnInterrupt(void (*handler)());

// Each file is written under a temporary name in its own folder; Commit renames them. Without Commit no
// existing file changes.
//
// A replaced file keeps its permissions and, if the system allows it, its owner. A symbolic link stays, and
// its target is replaced or created. Other hard links keep the old contents.
class OutputFiles {
 public:
  OutputFiles() = default;
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // `data` begins with the packed elements of `tensor`.
  Status AddNpy(const std::string& path, const TensorDesc& tensor, std::span<const std::byte> data);
  // Elements of whole bytes, in any sizes that match `data`.
  Status AddNpy(const std::string& path, DataType type, const std::vector<int64_t>& sizes,
                std::span<const std::byte> data);
  Status AddRaw(const std::string& path, std::span<const std::byte> data);
  Status Commit();

 private:
  Status Add(const std::string& path, const std::string& header, std::span<const std::byte> data);

  struct Pending {
    std::string temporary;
    std::string path;
  };
  std::vector<Pending> pending_;  // the process also tracks these temporary files (output_files.cc)
};

}  // namespace anydml::client
