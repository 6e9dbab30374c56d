// Runs a fuzz target on files and folders of files, with any compiler, to reproduce a crash or to replay a
// corpus. Accepts and ignores libFuzzer's options.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "fuzz.h"

int main(int argc, char** argv) {
  std::set<std::filesystem::path> files;  // in the same order everywhere
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    if (!std::filesystem::is_directory(argv[i])) {
      files.insert(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.insert(entry.path());
  }
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    anydml::fuzz::Require(file.good(), path.string() + " cannot be read");
    // Exactly as long as the file, so that a sanitizer sees every read beyond it.
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::printf("%s: %zu bytes\n", path.filename().c_str(), bytes.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  anydml::fuzz::Require(!files.empty(), "no input was given: name files or folders of them");
  return 0;
}
