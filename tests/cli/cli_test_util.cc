#include "cli_test_util.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

extern char** environ;

namespace anydml::client {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::vector<JsonValue> Children(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kArray) return value.elements;
  std::vector<JsonValue> children;
  VisitElements(value, [&children](const JsonValue& element) {
    children.push_back(element);
    return true;
  });
  return children;
}

namespace {

std::string ToText(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kNull) return "null";
  if (value.kind != JsonValue::Kind::kArray && value.kind != JsonValue::Kind::kObject) return value.text;
  std::string text = "[";
  for (const JsonValue& element : Children(value)) text += (text.size() > 1 ? "," : "") + ToText(element);
  return text + "]";
}

}  // namespace

void CliTest::SetUp() {
  std::string name = (std::filesystem::temp_directory_path() / "anydml_cli_XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

void CliTest::TearDown() { std::filesystem::remove_all(folder_); }

CliResult CliTest::Run(std::vector<std::string> arguments, std::vector<std::string> environment) const {
  const std::filesystem::path out = folder_.string() + ".out", err = folder_.string() + ".err";
  arguments.insert(arguments.begin(), ANYDML_CLI);
  // The user's own settings must not influence the tests.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, 7) != "ANYDML_") environment.push_back(*entry);
  }
  const std::vector<char*> argument_pointers = Pointers(arguments),
                           environment_pointers = Pointers(environment);
  CliResult result;
  // Not posix_spawn: with it, the peak memory of this process would count as the child's.
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    if (chdir(folder_.c_str()) == 0 && dup2(open(out.c_str(), kFlags, 0600), 1) == 1 &&
        dup2(open(err.c_str(), kFlags, 0600), 2) == 2) {
      execve(ANYDML_CLI, argument_pointers.data(), environment_pointers.data());
    }
    _exit(127);
  }
  int status = 0;
  struct rusage usage {};
  wait4(child, &status, 0, &usage);
  result.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.out = ReadWhole(out);
  result.err = ReadWhole(err);
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return result;
}

std::string CliTest::RunFailing(int exit_code, std::vector<std::string> arguments) const {
  const CliResult result = Run(std::move(arguments));
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.substr(0, 8), "anydml: ");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  return result.err;
}

JsonValue CliTest::RunJson(int exit_code, std::vector<std::string> arguments) const {
  arguments.push_back("--json");
  const CliResult result = Run(std::move(arguments));
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
  // without --json, people still get the message
  EXPECT_EQ(result.err.empty(), exit_code == 0) << result.err;
  JsonValue document;
  const Status status = ParseJson("stdout", documents_.emplace_back(result.out), &document);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << result.out;
  return document;
}

std::string CliTest::Text(const JsonValue& document, std::initializer_list<std::string_view> steps) {
  JsonValue value = document;
  for (const std::string_view step : steps) {
    const auto key = std::find(value.keys.begin(), value.keys.end(), step);
    const bool is_list = value.kind == JsonValue::Kind::kArray;
    const size_t index = is_list ? std::stoul(std::string(step)) : size_t(key - value.keys.begin());
    const std::vector<JsonValue> children = Children(value);
    if (index >= children.size()) return "no " + std::string(step);
    value = children[index];
  }
  return ToText(value);
}

void CliTest::WriteBytes(const std::string& name, const std::string& bytes) const {
  std::ofstream(Path(name), std::ios::binary) << bytes;
}

std::string CliTest::ReadBytes(const std::string& name) const { return ReadWhole(Path(name)); }

std::string CliTest::Header(const std::string& descr, const std::string& shape, bool fortran) {
  const std::string text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                           ", 'shape': " + shape + ", }\n";
  std::string header = "\x93NUMPY";
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

void CliTest::ExpectOnly(std::vector<std::string> names) const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    found.push_back(entry.path().filename().string());
  }
  std::sort(found.begin(), found.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(found, names);
}

}  // namespace anydml::client
