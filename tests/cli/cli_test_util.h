// Runs the command line in a folder for the test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "client/json/json.h"
#include "client/values/npy.h"

namespace anydml::client {

struct CliResult {
  int exit_code = -1;
  uint64_t peak_bytes = 0;  // of its memory
  std::string out;
  std::string err;
};

// The elements of an array or the values of an object.
std::vector<JsonValue> Children(const JsonValue& value);

class CliTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // In the test's folder; `environment` entries are "NAME=value".
  CliResult Run(std::vector<std::string> arguments, std::vector<std::string> environment = {}) const;

  // Runs a command that must fail with this exit code and one line on stderr, which is returned.
  std::string RunFailing(int exit_code, std::vector<std::string> arguments) const;

  // Runs a command with --json, and returns its output, which must be one document. Valid until the test
  // ends.
  JsonValue RunJson(int exit_code, std::vector<std::string> arguments) const;
  // The member or element at the end of the path, as text: "3", "name", "[3,2]", "null".
  static std::string Text(const JsonValue& document, std::initializer_list<std::string_view> steps);

  std::filesystem::path Path(const std::string& name) const { return folder_ / name; }
  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }
  void WriteBytes(const std::string& name, const std::string& bytes) const;
  std::string ReadBytes(const std::string& name) const;

  // Written by the test, not by the tested code. `descr` is NumPy's dtype.
  template <typename T>
  void WriteNpy(const std::string& name, const std::string& descr, const std::string& shape,
                const std::vector<T>& elements, bool fortran = false) const {
    std::string bytes = Header(descr, shape, fortran);
    bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
    WriteBytes(name, bytes);
  }
  static std::string Header(const std::string& descr, const std::string& shape, bool fortran = false);

  // The elements of a C-order file, which must have this shape.
  template <typename T>
  std::vector<T> ReadElements(const std::string& name, std::initializer_list<uint32_t> sizes) const {
    NpyArray array;
    const Status status = ReadNpy(Path(name).string(), &array);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    EXPECT_EQ(
        std::vector<uint32_t>(sizes),
        std::vector<uint32_t>(array.tensor.sizes.begin(), array.tensor.sizes.begin() + array.tensor.rank));
    EXPECT_EQ(BitSize(array.tensor.type), 8 * sizeof(T));
    std::vector<T> elements(ElementCount(array.tensor));
    std::memcpy(elements.data(), array.data.data(), elements.size() * sizeof(T));
    return elements;
  }

  // The folder contains only these files (forgotten temporary files would show).
  void ExpectOnly(std::vector<std::string> names) const;

 private:
  std::filesystem::path folder_;
  mutable std::deque<std::string> documents_;  // values that were read refer to these texts
};

}  // namespace anydml::client
