// The commands that only print information.
#include <regex>

#include "cli_test_util.h"

namespace anydml::client {
namespace {

using CliListTest = CliTest;

TEST_F(CliListTest, Version) {
  const CliResult result = Run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(std::regex_match(result.out, std::regex("anydml [0-9]+\\.[0-9]+\\.[0-9]+\n"))) << result.out;
}

TEST_F(CliListTest, Help) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"help"},
                                                    {"-h"},
                                                    {"op", "--help"},
                                                    {"operators", "-h"},
                                                    {"adapters", "--help"}}) {
    const CliResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out.substr(0, 13), "usage: anydml") << result.out;
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(CliListTest, Adapters) {
  const CliResult result = Run({"adapters"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.substr(0, 3), "0  ");
  // A GPU, or the reason why there is none.
  EXPECT_NE(result.out.find("cuda:") == std::string::npos, result.out.find("\nno GPU: ") == std::string::npos)
      << result.out;
  RunFailing(2, {"adapters", "more"});
}

TEST_F(CliListTest, AllOperators) {
  const CliResult result = Run({"operators"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 178);  // and a heading
  EXPECT_TRUE(std::regex_search(result.out, std::regex("\nTOP_K1 +2\\.1 +.*cpu\\.reference\n")))
      << result.out;
}

TEST_F(CliListTest, OneOperator) {
  const CliResult result = Run({"operators", "TOP_K1"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* text :
       {"since feature level 2.1", "cpu.reference", "AxisDirection", "INCREASING, DECREASING",
        "feature level 3.1 and above", "1 to 8 dimensions", "4 dimensions", "UINT64"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in:\n" << result.out;
  }
  EXPECT_NE(RunFailing(2, {"operators", "TOP_K2"}).find("did you mean TOP_K"), std::string::npos);
  RunFailing(2, {"operators", "TOP_K", "TOP_K1"});
}

}  // namespace
}  // namespace anydml::client
