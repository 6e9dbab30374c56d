// The completions that the shells offer, and that bash uses them.
#include <sys/wait.h>

#include "anydml/cli/completion.h"
#include "cli_test_util.h"

namespace anydml::client {
namespace {

std::string Completed(std::vector<std::string> words) {
  const Candidates candidates = Complete(words);
  std::string text;
  for (const Candidate& candidate : candidates.list) text += (text.empty() ? "" : " ") + candidate.text;
  return candidates.files ? text + ":files" : text;
}

TEST(Completion, Commands) {
  EXPECT_EQ(Completed({"op"}), "op operators");
  EXPECT_EQ(Completed({"c"}), "check conformance completion");
  EXPECT_EQ(Completed({"--v"}), "--version");
  EXPECT_EQ(Completed({"nonsense", ""}), "");
  EXPECT_EQ(Completed({}), "");
}

TEST(Completion, Options) {
  EXPECT_EQ(Completed({"check", "--"}), "--feature-level --allow-outside --shapes --json --help");
  EXPECT_EQ(Completed({"run", "m.json", "--allow"}), "--allow-outside --allow-out-of-range");
  EXPECT_EQ(Completed({"run", "--feature-level", "2"}), "2.0 2.1");
  EXPECT_EQ(Completed({"run", "--feature-level=2"}), "--feature-level=2.0 --feature-level=2.1");
  EXPECT_EQ(Completed({"op", "TOP_K1", "--index-type", "UINT6"}), "UINT64");
  EXPECT_EQ(Completed({"op", "TOP_K1", "--implementation", "cpu.re"}), "cpu.reference");
  EXPECT_EQ(Completed({"op", "SCATTER_ND", "--implementation", "cpu.ra"}), "");  // of TOP_K1
  EXPECT_NE(Completed({"run", "--adapter", "c"}).find("cpu"), std::string::npos);
}

TEST(Completion, Operands) {
  EXPECT_EQ(Completed({"run", ""}), ":files");
  EXPECT_EQ(Completed({"run", "--why", "m"}), ":files");
  EXPECT_EQ(Completed({"run", "m.json", ""}), "");
  EXPECT_EQ(Completed({"operators", "SCATTER_"}), "SCATTER_ELEMENTS SCATTER_ND");
  EXPECT_EQ(Completed({"op", "TOP_"}), "TOP_K TOP_K1");
  EXPECT_EQ(Completed({"completion", ""}), "bash fish zsh");
}

TEST(Completion, Fields) {
  EXPECT_EQ(Completed({"op", "GEMM", "FusedActivation=ACTIVATION_RE"}), "FusedActivation=ACTIVATION_RELU");
  EXPECT_EQ(Completed({"op", "TOP_K1", "A"}), "Axis= AxisDirection=");
  EXPECT_EQ(Completed({"op", "TOP_K1", "Axis=1", "A"}), "AxisDirection=");
  EXPECT_EQ(Completed({"op", "TOP_K1", "AxisDirection="}),
            "AxisDirection=INCREASING AxisDirection=DECREASING");
  EXPECT_EQ(Completed({"op", "TOP_K1", "InputTensor=a"}), ":files");
  EXPECT_EQ(Completed({"op", "CUMULATIVE_PRODUCT", "HasExclusiveProduct=t"}), "HasExclusiveProduct=true");
  EXPECT_EQ(Completed({"op", "--why", "TOP_K1", "K"}), "K=");
  EXPECT_EQ(Completed({"op", "NO_SUCH", "A"}), "");
}

class CliCompletionTest : public CliTest {
 protected:
  // The completions that bash offers for the line.
  std::string InBash(const std::string& line) const {
    WriteBytes("try.sh", "set -u\nPATH=" + std::filesystem::path(ANYDML_CLI).parent_path().string() +
                             ":$PATH\ncd '" + Path("").string() + "'\nsource <(anydml completion bash)\n" +
                             "COMP_LINE='" + line + "' COMP_POINT=" + std::to_string(line.size()) +
                             "\n_anydml\necho \"${COMPREPLY[*]:-}\" >said\n");
    EXPECT_EQ(std::system(("bash '" + Path("try.sh").string() + "'").c_str()), 0);
    return ReadBytes("said");
  }
};

TEST_F(CliCompletionTest, Bash) {
  WriteBytes("input.npy", "");
  EXPECT_EQ(InBash("anydml che"), "check\n");
  EXPECT_EQ(InBash("anydml op TOP_K1 AxisD"), "AxisDirection=\n");
  // bash replaces only what follows the last '='.
  EXPECT_EQ(InBash("anydml op TOP_K1 AxisDirection=DEC"), "DECREASING\n");
  EXPECT_EQ(InBash("anydml op TOP_K1 InputTensor=inp"), "input.npy\n");
  EXPECT_EQ(InBash("anydml run inp"), "input.npy\n");
  EXPECT_EQ(InBash("anydml run --feature-level=2."), "2.0 2.1\n");
  EXPECT_EQ(InBash("anydml completion "), "bash fish zsh\n");
}

TEST_F(CliCompletionTest, Scripts) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const CliResult result = Run({"completion", shell});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("completion --words"), std::string::npos) << result.out;
    WriteBytes(shell, result.out);
    const std::string find = std::string("command -v ") + shell + " >/dev/null";
    if (std::system(find.c_str()) != 0) continue;
    EXPECT_EQ(std::system((std::string(shell) + " -n '" + Path(shell).string() + "'").c_str()), 0) << shell;
  }
  RunFailing(2, {"completion"});
  EXPECT_NE(RunFailing(2, {"completion", "bsh"}).find("did you mean bash?"), std::string::npos);
}

}  // namespace
}  // namespace anydml::client
