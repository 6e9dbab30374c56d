// `anydml bench`: the choice of cases and the output, not speed.
#include <algorithm>
#include <sstream>

#include "cli_test_util.h"
#include "client/json/json.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

class CliBenchTest : public CliTest {
 protected:
  static std::vector<std::string> TopK1(std::vector<std::string> more,
                                        const std::string& input = "InputTensor=random:4x100") {
    std::vector<std::string> arguments = {"bench", "TOP_K1", input, "Axis=1", "AxisDirection=DECREASING"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The JSON document of a run with --json, which must succeed.
  JsonValue RunJson(std::vector<std::string> arguments) const {
    return CliTest::RunJson(0, std::move(arguments));
  }

  static const JsonValue& Member(const JsonValue& object, const std::string& key) {
    const auto found = std::find(object.keys.begin(), object.keys.end(), key);
    static const JsonValue kNothing;
    EXPECT_NE(found, object.keys.end()) << key;
    return found == object.keys.end() ? kNothing : object.elements[found - object.keys.begin()];
  }
  static double Number(const JsonValue& object, const std::string& key) {
    return std::stod(Member(object, key).text);
  }

  std::vector<std::string> CaseNames(std::vector<std::string> arguments) const {
    std::vector<std::string> names;
    const JsonValue document = RunJson(std::move(arguments));
    for (const JsonValue& one : Children(Member(document, "cases"))) {
      names.push_back(Member(one, "name").text);
    }
    return names;
  }

  void ExpectFails(int exit_code, const std::vector<std::string>& arguments,
                   std::initializer_list<const char*> words) const {
    const std::string sentence = RunFailing(exit_code, arguments);
    for (const char* word : words) {
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
    }
  }
};

TEST_F(CliBenchTest, Json) {
  const JsonValue document = RunJson(TopK1({"K=3", "--iterations=7", "--warm-up=0", "--adapter=cpu"}));
  const std::vector<JsonValue> adapters = Children(Member(document, "adapters"));
  ASSERT_EQ(adapters.size(), 1u);
  EXPECT_EQ(Member(adapters[0], "id").text, "cpu");
  EXPECT_GT(Number(adapters[0], "copyBytesPerSecond"), 0);
  const std::vector<JsonValue> cases = Children(Member(document, "cases"));
  ASSERT_EQ(cases.size(), 1u);
  const JsonValue& one = cases[0];
  EXPECT_EQ(Member(one, "name").text, "TOP_K1 4x100 FLOAT32");
  EXPECT_EQ(Number(one, "k"), 3);
  EXPECT_EQ(CountElements(Member(one, "sizes")), 2u);
  EXPECT_EQ(Number(one, "iterations"), 7);
  EXPECT_EQ(Member(one, "implementation").text.substr(0, 4), "cpu.");
  // 400 elements in; 12 values and 12 indices out.
  EXPECT_EQ(Number(one, "bytesMoved"), 4 * (400 + 12 + 12));
  for (const char* key : {"endToEndMs", "deviceMs"}) {
    const JsonValue& times = Member(one, key);
    EXPECT_GT(Number(times, "min"), 0) << key;
    EXPECT_LE(Number(times, "min"), Number(times, "p50"));
    EXPECT_LE(Number(times, "p50"), Number(times, "p90"));
    EXPECT_LE(Number(times, "p90"), Number(times, "p99"));
    EXPECT_LE(Number(times, "min"), Number(times, "mean") * 1.0001);  // six digits are written
  }
}

TEST_F(CliBenchTest, Table) {
  const CliResult result = Run(TopK1({"K=3", "--seconds=0.01", "--adapter", "cpu", "--why"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");  // no progress without a terminal
  for (const char* word : {"copies", "p50", "p99", "device", "moved", "GB/s", "of the copy", "1.7 kB",
                           "TOP_K1 4x100 FLOAT32", "cpu.reference: "}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in:\n" << result.out;
  }
}

TEST_F(CliBenchTest, CsvHasOneLinePerCase) {
  const CliResult result = Run(TopK1({"K={1,3}", "--iterations=2", "--csv"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<std::ptrdiff_t> commas;
  for (std::string line; std::getline(lines, line);)
    commas.push_back(std::count(line.begin(), line.end(), ','));
  ASSERT_EQ(commas.size(), 3u) << result.out;
  EXPECT_EQ(commas[1], commas[0]);
  EXPECT_EQ(commas[2], commas[0]);
  EXPECT_NE(result.out.find("\nTOP_K1 4x100 FLOAT32 K=3,TOP_K1,FLOAT32,4x100,3,"), std::string::npos);
}

TEST_F(CliBenchTest, SweepTakesAllCombinations) {
  const std::vector<std::string> names = {"TOP_K1 1x64 FLOAT32 K=1", "TOP_K1 1x64 FLOAT32 K=8",
                                          "TOP_K1 3x64 FLOAT32 K=1", "TOP_K1 3x64 FLOAT32 K=8"};
  EXPECT_EQ(CaseNames(TopK1({"K={1,8}", "--iterations=1"}, "InputTensor=random:{1,3}x64")), names);
  // Arguments after a shell's brace expansion; a repeated value is timed once.
  EXPECT_EQ(CaseNames(TopK1({"K=1", "InputTensor=random:3x64", "K=8", "K=1", "--iterations=1"},
                            "InputTensor=random:1x64")),
            names);
}

TEST_F(CliBenchTest, NamesTellCasesApart) {
  EXPECT_EQ(CaseNames({"bench", "TOP_K1", "InputTensor=random:2x8:{int8,float16}:seed={1,2}", "Axis=1", "K=2",
                       "AxisDirection={DECREASING,INCREASING}", "--iterations=1"}),
            (std::vector<std::string>{"TOP_K1 2x8 INT8 seed=1 AxisDirection=DECREASING",
                                      "TOP_K1 2x8 INT8 seed=1 AxisDirection=INCREASING",
                                      "TOP_K1 2x8 INT8 seed=2 AxisDirection=DECREASING",
                                      "TOP_K1 2x8 INT8 seed=2 AxisDirection=INCREASING",
                                      "TOP_K1 2x8 FLOAT16 seed=1 AxisDirection=DECREASING",
                                      "TOP_K1 2x8 FLOAT16 seed=1 AxisDirection=INCREASING",
                                      "TOP_K1 2x8 FLOAT16 seed=2 AxisDirection=DECREASING",
                                      "TOP_K1 2x8 FLOAT16 seed=2 AxisDirection=INCREASING"}));
}

TEST_F(CliBenchTest, LeavesOutWhatTheOperatorDoesNotAllow) {
  const CliResult result = Run(TopK1({"K={1,200}", "--iterations=1", "--csv"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("left out: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("K is 200"), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  const CliResult none = Run(TopK1({"K={200,300}", "--iterations=1"}));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("none of the 2 combinations"), std::string::npos) << none.err;
  ExpectFails(1, TopK1({"K=200"}), {"K is 200", "[1, 100]"});
}

TEST_F(CliBenchTest, Model) {
  const std::string model = std::string(ANYDML_EXAMPLE_MODELS) + "/chain.json";
  const JsonValue document = RunJson({"bench", model, "--iterations", "3"});
  const JsonValue one = Children(Member(document, "cases")).at(0);
  EXPECT_EQ(Member(one, "operator").text, "model");
  EXPECT_EQ(Member(one, "name").text, model);
  EXPECT_EQ(Number(one, "iterations"), 3);
  EXPECT_NE(Member(one, "implementation").text.find(", "), std::string::npos);  // it has two operators
  WriteBytes("empty.json", R"({"resources": {}, "dispatchables": {}, "commands": []})");
  ExpectFails(2, {"bench", "empty.json"}, {"empty.json", "nothing to time"});
  ExpectFails(2, {"bench", model, "K=3"}, {"a model has no fields", "K"});
}

TEST_F(CliBenchTest, Compare) {
  ExpectFails(3, TopK1({"K=1", "--compare=cpu,no such adapter"}), {"no such adapter", "cpu ("});
  ExpectFails(2, TopK1({"K=1", "--compare=cpu,cpu"}), {"cpu is there twice"});
  ExpectFails(2, TopK1({"K=1", "--compare=cpu", "--adapter=cpu"}), {"exclude each other"});
  EXPECT_EQ(CaseNames(TopK1({"K=1", "--compare=cpu", "--iterations=1"})).size(), 1u);
  const bool gpu = Run({"adapters"}).out.find("cuda:0") != std::string::npos;
  const std::vector<std::string> both = TopK1({"K=1", "--compare=cpu,cuda", "--iterations=1"});
  if (!gpu) return ExpectFails(3, both, {"no adapter 'cuda'", "no GPU: "});
  EXPECT_EQ(CaseNames(both).size(), 2u);
  EXPECT_NE(Run(both).out.find("x cpu"), std::string::npos);
}

TEST_F(CliBenchTest, BadUsage) {
  ExpectFails(2, {"bench"}, {"no operator and no model"});
  ExpectFails(2, {"bench", "TOPK1"}, {"did you mean TOP_K1?"});
  ExpectFails(2, {"bench", "K=3", "TOP_K1"}, {"'TOP_K1' is not of the form"});
  ExpectFails(2, TopK1({"K=1", "--iterations=0"}), {"--iterations is 0", "from 1 to 10000000"});
  ExpectFails(2, TopK1({"K=1", "--iterations=-1"}), {"--iterations is -1"});
  ExpectFails(2, TopK1({"K=1", "--iterations=1e3"}), {"--iterations is 1e3"});
  ExpectFails(2, TopK1({"K=1", "--iterations=99999999999999999999"}), {"--iterations is 9999999"});
  ExpectFails(2, TopK1({"K=1", "--seconds=0"}), {"--seconds is 0"});
  ExpectFails(2, TopK1({"K=1", "--seconds=nan"}), {"--seconds is nan"});
  ExpectFails(2, TopK1({"K=1", "--seconds=inf"}), {"--seconds is inf"});
  ExpectFails(2, TopK1({"K=1", "--warm-up="}), {"--warm-up is ;"});
  ExpectFails(2, TopK1({"K={1,2"}), {"K={1,2", "braces come in pairs"});
  ExpectFails(2, TopK1({"K={1,{2}}"}), {"braces come in pairs"});
  ExpectFails(2, TopK1({"K=}{"}), {"braces come in pairs"});
  ExpectFails(2, TopK1({"K={1,}"}), {"K is given without a value"});
  ExpectFails(2, TopK1({"K=1", "--peers=p.json"}), {"--peers", "--report"});
  ExpectFails(2, TopK1({"K=1", "--report="}), {"--report needs a file"});
  const CliResult both = Run(TopK1({"K=1", "--csv", "--json"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("exclude each other"), std::string::npos) << both.err;
}

TEST_F(CliBenchTest, TooManyCombinations) {
  std::string list = "{1";
  for (int i = 2; i <= 200; ++i) list += StrCat(",", i);
  ExpectFails(2, TopK1({StrCat("K=", list, "}"), StrCat("InputTensor=random:", list, "}x200")}),
              {"more than 10000"});
}

TEST_F(CliBenchTest, AbsurdSizes) {
  ExpectFails(2, TopK1({"K=1"}, "InputTensor=random:1000000x1000000"), {"InputTensor=random:", "2^32"});
  if (LargestBuffer() > uint64_t{30} << 30) return;  // where the number is meaningful
  ExpectFails(2, TopK1({"K=1"}, "InputTensor=random:65535x65536:float64"), {"memory"});
}

TEST_F(CliBenchTest, LooksAtTheDataFirst) {
  const std::vector<std::string> scatter = {
      "bench",         "SCATTER_ND", "InputTensor=random:4", "IndicesTensor=[[9]]:int32", "UpdatesTensor=[1]",
      "--iterations=1"};
  ExpectFails(1, scatter, {"SCATTER_ND", "9"});
  std::vector<std::string> allowed = scatter;
  allowed.push_back("--allow-out-of-range");
  EXPECT_EQ(Run(allowed).exit_code, 0);
}

TEST_F(CliBenchTest, ForcedImplementationIsNotTheCopys) {
  const JsonValue document = RunJson(TopK1({"K=3", "--iterations=1", "--implementation=cpu.reference"}));
  EXPECT_EQ(Member(Children(Member(document, "cases")).at(0), "implementation").text, "cpu.reference");
  const CliResult by_environment = Run(TopK1({"K=3", "--iterations=1"}), {"ANYDML_IMPLEMENTATION=cpu.rank"});
  EXPECT_EQ(by_environment.exit_code, 3);  // only because its rows are too long
  EXPECT_NE(by_environment.err.find("TOP_K1"), std::string::npos) << by_environment.err;
}

TEST_F(CliBenchTest, ReportThatCannotBeWritten) {
  // Reported before anything is timed: ten minutes would exceed the test's time limit.
  for (const char* path : {"no/such/folder/r.html", "/dev/null", "."}) {
    ExpectFails(1, TopK1({"K=1", "--seconds=600", std::string("--report=") + path}),
                {path, "cannot be written"});
  }
  ExpectOnly({});
}

TEST_F(CliBenchTest, Report) {
  const CliResult result = Run(TopK1({"K={1,3}", "--iterations=1", "--report=r.html"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadBytes("r.html").substr(0, 15), "<!DOCTYPE html>");
  ExpectOnly({"r.html"});
}

TEST_F(CliBenchTest, BadPeers) {
  const auto fails = [this](int exit_code, const std::string& text,
                            std::initializer_list<const char*> words) {
    WriteBytes("p.json", text);
    ExpectFails(exit_code, {"bench", "--report=r.html", "--peers=p.json"}, words);
    EXPECT_FALSE(Exists("r.html"));
  };
  ExpectFails(1, {"bench", "--report=r.html", "--peers=absent.json"}, {"absent.json", "No such file"});
  fails(1, "[{", {"p.json:1:"});
  fails(1, "{}", {"p.json:1:1", "array of records"});
  fails(2, "[]", {"no operator"});
  fails(1, "[3]", {"p.json:1:2", "record"});
  const std::string record =
      R"("case": "c", "operator": "TOP_K1", "type": "float32", "threads": 1, "floor_ms": 1)";
  fails(1, "[{" + record + "}]", {"ours_ms"});
  fails(1, "[{" + record + R"(, "ours_ms": 0, "peers": {}}])", {"ours_ms", "above 0"});
  fails(1, "[{" + record + R"(, "ours_ms": 1, "peers": {"torch": -1}}])", {"torch", "above 0"});
  fails(1, "[{" + record + R"(, "ours_ms": 1, "peers": {"torch": "fast"}}])", {"torch"});
}

}  // namespace
}  // namespace anydml::client
