// The tool's output: JSON, colours, the manual page; and its behaviour when the reader is gone.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anydml/cli/help.h"
#include "anydml/cli/output_files.h"
#include "anydml/commands/commands.h"
#include "cli_test_util.h"

namespace anydml::client {
namespace {

class CliOutputTest : public CliTest {
 protected:
  // Runs a command through a shell in the test's folder; returns the exit code.
  int Shell(const std::string& line) const {
    const std::string text = "cd '" + Path("").string() + "' && PATH=\"" +
                             std::filesystem::path(ANYDML_CLI).parent_path().string() + ":$PATH\" && " + line;
    const int status = std::system(("bash -c '" + text + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_F(CliOutputTest, JsonOfRun) {
  WriteBytes("m.json", R"({ "resources": {
      "x": { "initialValuesDataType": "FLOAT32", "initialValues": [1, "nan"] },
      "y": { "initialValuesDataType": "FLOAT32", "initialValues": [0, 0] } },
    "dispatchables": { "copy": { "type": "ELEMENT_WISE_IDENTITY", "desc": {
        "InputTensor": { "DataType": "FLOAT32", "Sizes": [2] },
        "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2] } } } },
    "commands": [
      { "type": "dispatch", "dispatchable": "copy", "bindings": { "InputTensor": "x", "OutputTensor": "y" } },
      { "type": "print", "resource": "y", "dimensions": [2, 1] },
      { "type": "writeFile", "resource": "y", "targetPath": "new/y.npy" },
      { "type": "expect", "resource": "y", "values": [1, 2] } ] })");
  const JsonValue document = RunJson(1, {"run", "m.json", "--why"});
  EXPECT_EQ(Text(document, {"command"}), "run");
  EXPECT_EQ(Text(document, {"dispatchables", "0", "name"}), "copy");
  EXPECT_EQ(Text(document, {"dispatchables", "0", "operator"}), "ELEMENT_WISE_IDENTITY");
  EXPECT_NE(Text(document, {"dispatchables", "0", "why"}).find("chosen"), std::string::npos);
  EXPECT_EQ(Text(document, {"commands", "0", "dispatchable"}), "copy");
  EXPECT_EQ(Text(document, {"commands", "1", "sizes"}), "[2,1]");
  EXPECT_EQ(Text(document, {"commands", "1", "values"}), "[[1],[nan]]");
  EXPECT_EQ(Text(document, {"commands", "2", "file"}), "new/y.npy");
  EXPECT_EQ(Text(document, {"commands", "3", "differences"}), "1");
  EXPECT_EQ(Text(document, {"error", "kind"}), "failed");
  EXPECT_TRUE(Exists("new/y.npy"));
}

TEST_F(CliOutputTest, JsonOfOp) {
  const JsonValue document = RunJson(0, {"op", "TOP_K1", "InputTensor=[3,1,2]", "Axis=0", "K=2",
                                         "AxisDirection=DECREASING", "OutputIndexTensor=i.npy", "--why"});
  EXPECT_EQ(Text(document, {"operator"}), "TOP_K1");
  EXPECT_NE(Text(document, {"why", "0", "implementation"}).find("."), std::string::npos);
  EXPECT_EQ(Text(document, {"outputs", "0", "dataType"}), "FLOAT32");
  EXPECT_EQ(Text(document, {"outputs", "0", "values"}), "[3,2]");
  EXPECT_EQ(Text(document, {"outputs", "1", "file"}), "i.npy");
  EXPECT_EQ(Text(document, {"outputs", "1", "values"}), "no values");
}

TEST_F(CliOutputTest, JsonOfLists) {
  const JsonValue adapters = RunJson(0, {"adapters"});
  EXPECT_EQ(Text(adapters, {"adapters", "0", "index"}), "0");
  EXPECT_NE(Text(adapters, {"adapters", "0", "id"}), "");
  const JsonValue operators = RunJson(0, {"operators"});
  EXPECT_EQ(Text(operators, {"operators", "176", "since"}), "6.4");
  const JsonValue top_k1 = RunJson(0, {"operators", "TOP_K1"});
  EXPECT_EQ(Text(top_k1, {"operator", "backends", "0"}), "cpu");
  EXPECT_EQ(Text(top_k1, {"operator", "fields", "5", "values"}), "[INCREASING,DECREASING]");
  EXPECT_EQ(Text(top_k1, {"operator", "support", "2", "featureLevel"}), "2.1");
  EXPECT_EQ(Text(top_k1, {"operator", "support", "2", "tensors", "0", "minDimensions"}), "4");
  EXPECT_EQ(Text(RunJson(0, {"operators", "REDUCE"}), {"operator", "support", "0", "Function"}),
            "[L1,SUM_SQUARE]");
}

TEST_F(CliOutputTest, JsonOfErrors) {
  EXPECT_EQ(Text(RunJson(2, {}), {"error", "kind"}), "usage");
  EXPECT_EQ(Text(RunJson(2, {"run", "--wy"}), {"error", "message"}),
            "unknown option --wy; did you mean --why?");
  EXPECT_EQ(Text(RunJson(1, {"run", "\xFF.json"}), {"error", "exitCode"}), "1");
  EXPECT_EQ(Text(RunJson(3, {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1]", "--adapter=none"}),
                 {"error", "kind"}),
            "unsupported");
}

TEST_F(CliOutputTest, OptionsEndAtTwoDashes) {
  WriteBytes("--json", "{");
  EXPECT_NE(RunFailing(1, {"run", "--", "--json"}).find("--json:1:2: "), std::string::npos);
}

// Help and the manual page are generated from the parser's tables.
TEST_F(CliOutputTest, HelpNamesEveryOption) {
  const std::string page = ManPage();
  for (const Command* command : AllCommands()) {
    const CliResult help = Run({std::string(command->name), "--help"});
    EXPECT_EQ(help.exit_code, 0);
    for (const Option& option : OptionsOf(*command)) {
      EXPECT_NE(help.out.find("  " + std::string(option.name)), std::string::npos) << help.out;
      std::string escaped;
      for (const char c : option.name) escaped += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_NE(page.find(".B " + escaped), std::string::npos) << option.name;
    }
  }
}

TEST_F(CliOutputTest, ManPageIsGoodTroff) {
  if (Shell("command -v groff >/dev/null") != 0) GTEST_SKIP() << "no groff";
  EXPECT_EQ(Shell("anydml man >page && groff -man -Tascii -P-cbou -ww page >text 2>warnings"), 0);
  EXPECT_EQ(ReadBytes("warnings"), "");
  EXPECT_NE(ReadBytes("text").find("COMMANDS"), std::string::npos);
}

TEST_F(CliOutputTest, ClosedPipe) {
  // More than a pipe holds: the write cannot complete before the reader ends.
  EXPECT_EQ(
      Shell("anydml op ELEMENT_WISE_IDENTITY InputTensor=random:100000 --json 2>err | head -c 1 >/dev/null; "
            "exit ${PIPESTATUS[0]}"),
      1);
  EXPECT_EQ(ReadBytes("err"), "anydml: standard output cannot be written: Broken pipe\n");
}

TEST_F(CliOutputTest, FullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  for (const char* command : {"operators", "adapters", "--help", "operators --json", "man"}) {
    EXPECT_EQ(Shell(std::string("anydml ") + command + " >/dev/full 2>err"), 1) << command;
    EXPECT_NE(ReadBytes("err").find("No space left on device"), std::string::npos) << ReadBytes("err");
  }
}

// To the program, the disk becomes full in the middle of a file.
TEST_F(CliOutputTest, NoRoomForTheWholeFile) {
  EXPECT_EQ(Shell("ulimit -f 1; anydml op ELEMENT_WISE_IDENTITY InputTensor=random:100000 "
                  "OutputTensor=out.npy 2>err"),
            1);
  EXPECT_EQ(ReadBytes("err"), "anydml: out.npy: cannot be written: File too large\n");
  ExpectOnly({"err"});
}

// The command's output when its standard output and error are a terminal.
std::string OnTerminal(const char* no_color) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  grantpt(terminal);
  unlockpt(terminal);
  const std::string name = ptsname(terminal);
  const pid_t child = fork();
  if (child == 0) {
    const int side = open(name.c_str(), O_RDWR | O_NOCTTY);
    dup2(side, 1);
    dup2(side, 2);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", no_color, 1);
    execl(ANYDML_CLI, "anydml", "operators", "NO_SUCH_ONE_AT_ALL", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  char text[1000];
  const ssize_t got = read(terminal, text, sizeof(text));
  close(terminal);
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}

TEST_F(CliOutputTest, ColoursOnlyOnTerminals) {
  EXPECT_EQ(OnTerminal("").substr(0, 16), "\033[31manydml:\033[0m");
  EXPECT_EQ(OnTerminal("1").substr(0, 8), "anydml: ");
  const CliResult result = Run({"operators", "TOP_K1"}, {"TERM=xterm"});
  EXPECT_EQ(result.out.find('\033'), std::string::npos);
}

using OutputFilesDeathTest = CliOutputTest;

TEST_F(OutputFilesDeathTest, SignalsRemoveTemporaryFiles) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          signal(number, SIG_DFL);  // background jobs ignore Ctrl-C
          if (!RemoveTemporaryFilesOnSignals().ok()) _exit(1);
          OutputFiles files;
          const bool written = files.AddRaw(Path("out.bin").string(), std::as_bytes(std::span("data"))).ok();
          const bool pending = !Exists("out.bin") && !std::filesystem::is_empty(Path(""));
          if (written && pending) kill(getpid(), number);
          for (;;) pause();
        },
        testing::KilledBySignal(number), "");
    ExpectOnly({});
  }
}

// The whole program, during an operation that practically never ends.
TEST_F(CliOutputTest, Termination) {
  EXPECT_EQ(
      Shell("{ anydml bench ELEMENT_WISE_IDENTITY InputTensor=random:10 --seconds=600 --report=r.html & } "
            "&& sleep 0.3 && kill -TERM $! && wait $!"),
      128 + SIGTERM);
  ExpectOnly({});
}

class CliReplacedTest : public CliTest {
 protected:
  void Write(const std::string& path) const {
    const CliResult result =
        Run({"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1,2]:uint8", "OutputTensor=" + path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  struct stat Status(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(lstat(Path(name).c_str(), &info), 0) << name;
    return info;
  }
  mode_t Mode(const std::string& name) const { return Status(name).st_mode & 07777; }
};

TEST_F(CliReplacedTest, KeepsPermissionsAndOwner) {
  for (const mode_t mode : {0600, 0644, 0660, 0700}) {
    WriteBytes("out.npy", "old");
    ASSERT_EQ(chmod(Path("out.npy").c_str(), mode), 0);
    if (geteuid() == 0) ASSERT_EQ(chown(Path("out.npy").c_str(), 1234, 4321), 0);
    const struct stat before = Status("out.npy");
    Write("out.npy");
    EXPECT_EQ(ReadElements<uint8_t>("out.npy", {2}), (std::vector<uint8_t>{1, 2}));
    EXPECT_EQ(Mode("out.npy"), mode);
    EXPECT_EQ(Status("out.npy").st_uid, before.st_uid);
    EXPECT_EQ(Status("out.npy").st_gid, before.st_gid);
  }
  const mode_t mask = umask(0);
  umask(mask);
  Write("new.npy");
  EXPECT_EQ(Mode("new.npy"), 0666 & ~mask);
}

TEST_F(CliReplacedTest, FollowsSymbolicLinks) {
  std::filesystem::create_directory(Path("sub"));
  WriteBytes("sub/there.npy", "old");
  ASSERT_EQ(chmod(Path("sub/there.npy").c_str(), 0600), 0);
  std::filesystem::create_symlink("sub/there.npy", Path("link.npy"));
  std::filesystem::create_symlink("../sub/created.npy", Path("sub/dangling.npy"));
  Write("link.npy");
  Write("sub/dangling.npy");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.npy")));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("sub/dangling.npy")));
  EXPECT_EQ(ReadElements<uint8_t>("sub/there.npy", {2}), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(Mode("sub/there.npy"), 0600u);
  EXPECT_EQ(ReadElements<uint8_t>("sub/created.npy", {2}), (std::vector<uint8_t>{1, 2}));
  std::filesystem::create_symlink("circle.npy", Path("circle.npy"));
  EXPECT_NE(RunFailing(1, {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=[1]", "OutputTensor=circle.npy"})
                .find("circle.npy: too many levels of symbolic links"),
            std::string::npos);
}

TEST_F(CliReplacedTest, OtherHardLinksKeepTheOldContents) {
  WriteBytes("out.npy", "old");
  std::filesystem::create_hard_link(Path("out.npy"), Path("other.npy"));
  Write("out.npy");
  EXPECT_EQ(ReadBytes("other.npy"), "old");
  EXPECT_EQ(ReadElements<uint8_t>("out.npy", {2}), (std::vector<uint8_t>{1, 2}));
}

}  // namespace
}  // namespace anydml::client
