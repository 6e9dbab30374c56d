// Malicious files: which files models may touch, how much memory and time they take, and what they can print
// on the terminal.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "anydml/model/model.h"
#include "base/sanitizers.h"
#include "cli_test_util.h"
#include "client/suggest.h"

namespace anydml::client {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;  // memory and time differ under sanitizers

class CliHostileTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    std::filesystem::create_directories(Path("model/sub"));
    WriteNpy("outside.npy", "<f4", "(2,)", std::vector<float>{1, 2});
    WriteNpy("model/inside.npy", "<f4", "(2,)", std::vector<float>{3, 4});
  }

  void WriteModel(const std::string& resources, const std::string& commands) const {
    WriteBytes("model/m.json", "{ \"resources\": {" + resources +
                                   "}, \"dispatchables\": {}, \"commands\": [" + commands + "] }");
  }
  void WriteReader(const std::string& path) const {
    WriteModel("\"a\": { \"initialValues\": { \"sourcePath\": \"" + path + "\" } }",
               R"({ "type": "print", "resource": "a" })");
  }
  void WriteWriter(const std::string& path) const {
    WriteModel(R"("a": { "initialValues": { "sourcePath": "inside.npy" } })",
               "{ \"type\": \"writeFile\", \"resource\": \"a\", \"targetPath\": \"" + path + "\" }");
  }
  void ExpectRefused(const std::string& place) const {
    for (const char* command : {"run", "check", "graph", "bench"}) {
      const std::string sentence = RunFailing(1, {command, "model/m.json"});
      EXPECT_NE(sentence.find(place + ": '"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("leads outside of the model's folder; --allow-outside permits it"),
                std::string::npos)
          << sentence;
    }
  }
};

TEST_F(CliHostileTest, ReadsOnlyItsFolder) {
  std::filesystem::create_symlink("../outside.npy", Path("model/link.npy"));
  std::filesystem::create_directory_symlink("..", Path("model/up"));
  for (const std::string& path :
       {std::string("../outside.npy"), std::string("..\\\\outside.npy"), std::string("sub/../../outside.npy"),
        std::string("new/../../outside.npy"), std::string("link.npy"), std::string("up/outside.npy"),
        Path("outside.npy").string()}) {
    WriteReader(path);
    ExpectRefused("resources.a.initialValues.sourcePath");
    EXPECT_EQ(Run({"check", "model/m.json", "--allow-outside"}).exit_code, path.starts_with("new/") ? 1 : 0);
    WriteModel(R"("a": { "initialValues": { "sourcePath": "inside.npy" } })",
               "{ \"type\": \"expect\", \"resource\": \"a\", \"sourcePath\": \"" + path + "\" }");
    ExpectRefused("commands[0].sourcePath");
  }
  WriteReader("../outside.npy");
  EXPECT_EQ(Run({"run", "model/m.json", "--allow-outside"}).out, "Resource 'a': 1, 2\n");
}

// Another process keeps replacing a file by a link that leads outside.
TEST_F(CliHostileTest, ReadsOnlyItsFolderWhileItChanges) {
  WriteReader("inside.npy");
  std::filesystem::create_symlink("../outside.npy", Path("model/link.npy"));
  const std::string file = Path("model/inside.npy").string(), link = Path("model/link.npy").string();
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    while (!done) renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  int read = 0, refused = 0, outside = 0;
  const float one = 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    Model model;
    const Status status = LoadModel(Path("model/m.json").string(), /*allow_outside=*/false, &model);
    ++(status.ok() ? read : refused);
    outside += status.ok() && std::memcmp(model.buffers[0].bytes.data(), &one, sizeof(one)) == 0;
  }
  done = true;
  swapper.join();
  EXPECT_EQ(outside, 0) << "of " << read;
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

// Threads: the signal thread, three workers, the queue's thread.
TEST_F(CliHostileTest, ThreadsThatCannotBeStarted) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  const auto run = [this](int failing, std::vector<std::string> words) {
    return Run(std::move(words),
               {"LD_PRELOAD=" ANYDML_FAILING_THREAD, "ANYDML_TEST_FAILING_THREAD=" + std::to_string(failing),
                "ANYDML_THREADS=4", "ANYDML_ADAPTER=cpu"});
  };
  const std::string none = "Resource temporarily unavailable\n";
  const CliResult help = run(1, {"--help"});
  EXPECT_EQ(help.exit_code, 1);
  EXPECT_EQ(help.err, "anydml: the thread that waits for signals cannot be started: " + none);
  for (const int thread : {2, 3, 4, 6}) {  // fewer workers, and one thread less
    const CliResult result = run(thread, {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1]"});
    EXPECT_EQ(result.exit_code, 0) << thread << result.err;
  }
  const CliResult queue = run(5, {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1]"});
  EXPECT_EQ(queue.exit_code, 1);
  EXPECT_NE(queue.err.find("the thread anydml-queue cannot be started: " + none), std::string::npos)
      << queue.err;
}

TEST_F(CliHostileTest, WritesOnlyItsFolder) {
  const std::string before = ReadBytes("outside.npy");
  std::filesystem::create_symlink("../outside.npy", Path("model/link.npy"));
  std::filesystem::create_symlink("../new.npy", Path("model/dangling.npy"));
  std::filesystem::create_directory_symlink("..", Path("model/up"));
  for (const std::string& path :
       {std::string("../outside.npy"), std::string("..\\\\new.npy"), std::string("sub/../../new.npy"),
        std::string("new/../../new.npy"), std::string("link.npy"), std::string("dangling.npy"),
        std::string("up/new.npy"), Path("new.npy").string()}) {
    WriteWriter(path);
    ExpectRefused("commands[0].targetPath");
  }
  EXPECT_EQ(ReadBytes("outside.npy"), before);
  ExpectOnly({"model", "outside.npy"});
  WriteWriter("dangling.npy");
  EXPECT_EQ(Run({"run", "model/m.json", "--allow-outside"}).exit_code, 0);
  EXPECT_EQ(ReadElements<float>("new.npy", {2}), (std::vector<float>{3, 4}));
}

TEST_F(CliHostileTest, ReadsAllOfItsFolder) {
  std::filesystem::create_symlink("../inside.npy", Path("model/sub/link.npy"));
  std::filesystem::create_directory_symlink("model", Path("link"));
  for (const std::string& path : {std::string("inside.npy"), std::string("sub/../inside.npy"),
                                  std::string("sub/link.npy"), Path("model/inside.npy").string()}) {
    WriteReader(path);
    EXPECT_EQ(Run({"run", "model/m.json"}).out, "Resource 'a': 3, 4\n") << path;
    EXPECT_EQ(Run({"run", "link/m.json"}).out, "Resource 'a': 3, 4\n") << path;
  }
  WriteWriter("new/folder/out.npy");
  EXPECT_EQ(Run({"run", "link/m.json"}).exit_code, 0);
  EXPECT_EQ(ReadElements<float>("model/new/folder/out.npy", {2}), (std::vector<float>{3, 4}));
}

TEST_F(CliHostileTest, LongPaths) {
  WriteReader(std::string(5000, 'a'));
  EXPECT_NE(RunFailing(1, {"check", "model/m.json"}).find("a path of 5000 bytes"), std::string::npos);
}

// The pipe has no writer, and /dev/zero has no end.
TEST_F(CliHostileTest, OnlyRegularFiles) {
  ASSERT_EQ(mkfifo(Path("model/pipe.npy").c_str(), 0600), 0);
  WriteReader("pipe.npy");
  const std::string words = "pipe.npy: is not a regular file";
  EXPECT_NE(RunFailing(1, {"check", "model/m.json"}).find(words), std::string::npos);
  EXPECT_NE(RunFailing(1, {"run", "model/pipe.npy"}).find(words), std::string::npos);
  EXPECT_NE(RunFailing(1, {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=model/pipe.npy"}).find(words),
            std::string::npos);
  WriteModel(R"("a": { "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "/dev/zero" } })",
             "");
  const CliResult zero = Run({"check", "model/m.json", "--allow-outside"});
  EXPECT_EQ(zero.exit_code, 1);
  EXPECT_NE(zero.err.find("/dev/zero: is not a regular file"), std::string::npos) << zero.err;
  // Files that claim to be empty and are not.
  EXPECT_NE(RunFailing(1, {"run", "/proc/self/status"}).find("holds more than the 0 bytes"),
            std::string::npos);
}

// Twice the file's size plus the program's own memory.
TEST_F(CliHostileTest, MemoryInProportionToTheModel) {
  const uint64_t program = Run({"--version"}).peak_bytes + 16 * kMiB;
  constexpr size_t kBytes = 16 * kMiB;
  const auto list = [](const std::string& element) {
    std::string text;
    while (text.size() < kBytes) text += element;
    return text;
  };
  for (const char* element : {"1,", "[],", "[[1],],"}) {
    WriteModel("\"a\": { \"initialValuesDataType\": \"UINT8\", \"initialValues\": [" + list(element) + "1] }",
               "");
    const CliResult result = Run({"check", "model/m.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (!kSanitized) EXPECT_LT(result.peak_bytes, program + 2 * kBytes) << element;
  }
  for (const char* element : {"{},", "{\"type\":1},", "0,"}) {
    WriteModel("", list(element));
    const CliResult result = Run({"check", "model/m.json"});
    EXPECT_EQ(result.exit_code, 1);
    if (!kSanitized) EXPECT_LT(result.peak_bytes, program + 2 * kBytes) << element;
  }
}

TEST_F(CliHostileTest, MemoryInProportionToTensors) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep memory";
  const uint64_t program = Run({"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1]"}).peak_bytes + 32 * kMiB;
  constexpr uint64_t kBytes = 96 * kMiB;
  WriteBytes("model/big.npy", Header("<f4", "(4096, 6144)"));
  std::filesystem::resize_file(Path("model/big.npy"), ReadBytes("model/big.npy").size() + kBytes);
  CliResult result =
      Run({"op", "ELEMENT_WISE_IDENTITY", "InputTensor=model/big.npy", "OutputTensor=out.npy"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.peak_bytes, program + 2 * kBytes);
  EXPECT_EQ(std::filesystem::file_size(Path("out.npy")) / kMiB, kBytes / kMiB);
  WriteModel(R"("a": { "initialValues": { "sourcePath": "big.npy" } })",
             R"({ "type": "writeFile", "resource": "a", "targetPath": "copy.npy" })");
  result = Run({"run", "model/m.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.peak_bytes, program + 2 * kBytes);
  EXPECT_EQ(std::filesystem::file_size(Path("model/copy.npy")) / kMiB, kBytes / kMiB);
}

TEST_F(CliHostileTest, ManyNames) {
  constexpr int kCount = 20000;
  std::string resources, commands;
  for (int i = 0; i < kCount; ++i) {
    const std::string name = "\"a resource with a name " + std::to_string(i) + "\"";
    resources +=
        (i > 0 ? "," : "") + name + R"(: { "initialValuesDataType": "UINT8", "initialValues": [1] })";
    commands += R"({ "type": "print", "resource": )" + name + "},";
  }
  WriteModel(resources, commands);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Run({"check", "model/m.json"}).exit_code, 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!kSanitized) EXPECT_LT(seconds.count(), 3);  // 0.3; it was 7 when names were searched linearly
}

TEST(Suggestions, OnlyForShortNames) {
  const std::string long_name(65, 'a'), longest(64, 'a');
  const std::string_view both[] = {long_name, longest};
  EXPECT_EQ(Nearest(longest, both), longest);
  EXPECT_EQ(Nearest(long_name, both), "");
  std::vector<std::string_view> many(1000, "zzzzzz");
  many.push_back("abcd");
  EXPECT_EQ(Nearest("abcde", many), "");
  many.erase(many.begin());
  EXPECT_EQ(Nearest("abcde", many), "abcd");
}

// ESC, U+009B (which terminals take for "ESC ["), a new line, and invalid UTF-8.
TEST_F(CliHostileTest, NamesDoNotReachTheTerminal) {
  const std::string name = R"(\u001b[31m\u009b2J\nanydml: fine)";
  WriteModel("\"" + name + R"(": { "initialValuesDataType": "UINT8", "initialValues": [1] })",
             "{ \"type\": \"print\", \"resource\": \"" + name + "\" }," +
                 "{ \"type\": \"print\", \"resource\": \"" + name + "\", \"dimensions\": [1] }," +
                 "{ \"type\": \"expect\", \"resource\": \"" + name + "\", \"values\": [2] }");
  const CliResult result = Run({"run", "model/m.json"});
  EXPECT_EQ(result.exit_code, 1);
  const std::string shown = R"(\x1B[31m\xC2\x9B2J\x0Aanydml: fine)";
  EXPECT_EQ(result.out,
            "Resource '" + shown + "': 1\nResource '" + shown + "': (Sizes:{1}, DataType:UINT8)\n[1]\n");
  EXPECT_NE(result.err.find("'" + shown + "': 1 of 1 elements"), std::string::npos) << result.err;
  const CliResult json = Run({"run", "model/m.json", "--json"});
  for (const std::string& text : {result.out, result.err, json.out, json.err}) {
    EXPECT_EQ(text.find('\x1B'), std::string::npos) << text;
    EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << text;
  }
  EXPECT_NE(json.out.find(R"(\u001b[31m\u009b2J\nanydml: fine)"), std::string::npos) << json.out;
}

TEST_F(CliHostileTest, PathsAndOperatorsDoNotReachTheTerminal) {
  WriteWriter(R"(sub/\u001b[31m/../../inside.npy/x.npy)");
  EXPECT_EQ(RunFailing(1, {"run", "model/m.json"}).find('\x1B'), std::string::npos);
  const std::string tensor = R"({ "DataType": "FLOAT32", "Sizes": [4] })";
  WriteBytes("model/m.json", R"({ "resources": {}, "commands": [], "dispatchables": { "\u001b[31mx": {
      "type": "ELEMENT_WISE_IDENTITY", "desc": { "InputTensor": )" +
                                 tensor + R"(, "OutputTensor": )" + tensor + "} } } }");
  const CliResult check = Run({"check", "model/m.json"});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_NE(check.out.find("\\x1B[31mx (ELEMENT_WISE_IDENTITY): valid"), std::string::npos) << check.out;
  const CliResult why = Run({"run", "model/m.json", "--why"});
  EXPECT_EQ(why.out.find('\x1B'), std::string::npos) << why.out;
}

}  // namespace
}  // namespace anydml::client
