// The parts of `anydml bench` whose results do not depend on the machine.
#include <gtest/gtest.h>

#include "anydml/bench/bench_output.h"
#include "anydml/bench/bench_timer.h"
#include "anydml/bench/report_charts.h"
#include "anydml/bench/svg_chart.h"
#include "anydml/cli/quantity.h"

namespace anydml::client {
namespace {

TEST(SummarizeTest, PercentilesAreSamples) {
  std::vector<double> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(i);
  const Summary summary = Summarize(samples);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.p50, 100);
  EXPECT_EQ(summary.p90, 180);
  EXPECT_EQ(summary.p99, 198);
  EXPECT_EQ(summary.mean, 100.5);
  const Summary one = Summarize({7});
  EXPECT_EQ(one.min, 7);
  EXPECT_EQ(one.p99, 7);
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(Summarize({3, 1, 2}).p50, 2);
}

TEST(QuantityTest, ThreeDigitsAndAUnit) {
  EXPECT_EQ(FormatSeconds(0), "0 ns");
  EXPECT_EQ(FormatSeconds(71.7e-9), "71.7 ns");
  EXPECT_EQ(FormatSeconds(999.4e-9), "999 ns");
  EXPECT_EQ(FormatSeconds(999.6e-9), "1 us");
  EXPECT_EQ(FormatSeconds(1.25e-3), "1.25 ms");
  EXPECT_EQ(FormatSeconds(0.1), "100 ms");
  EXPECT_EQ(FormatSeconds(75, "µ"), "75 s");
  EXPECT_EQ(FormatSeconds(2e-6, "µ"), "2 µs");
  EXPECT_EQ(FormatBytes(1696), "1.7 kB");
  EXPECT_EQ(FormatBytes(4.8e12), "4.8 TB");
  EXPECT_EQ(FormatCount(1000), "1000");
  EXPECT_EQ(FormatCount(16777216), "16.78M");
  EXPECT_EQ(FormatCount(20000), "20k");
  EXPECT_EQ(FormatNumber(0.0521), "0.0521");
  EXPECT_EQ(FormatNumber(123456), "123456");
  EXPECT_EQ(FormatNumber(1e9), "1e+09");
}

TEST(LogAxisTest, TicksAreInsideAndNeitherFewNorMany) {
  for (const double low : {1e-9, 0.02, 1.0, 7.0, 3e5}) {
    for (const double span : {1.0, 1.5, 9.0, 150.0, 1e4, 1e9}) {
      const LogAxis axis(low, low * span);
      EXPECT_GT(axis.Share(low), 0);
      EXPECT_LT(axis.Share(low * span), 1);
      const std::vector<double> ticks = axis.Ticks();
      EXPECT_GE(ticks.size(), 2u) << low << " " << span;
      EXPECT_LE(ticks.size(), 7u) << low << " " << span;
      for (const double tick : ticks) EXPECT_TRUE(axis.Share(tick) >= 0 && axis.Share(tick) <= 1);
    }
  }
}

TEST(EscapeTest, TextStaysText) {
  EXPECT_EQ(Escape("<a href=\"x\">&\n</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;?&lt;/a&gt;");
}

ReportTime Time(const std::string& who, double seconds) {
  ReportTime time;
  time.who = who;
  time.seconds = seconds;
  time.floor_name = "floor";
  time.floor_seconds = 1;
  return time;
}

ReportCase Case(std::vector<uint64_t> sizes, std::optional<uint64_t> k, std::string variant = "") {
  return {"name", "TOP_K1", "FLOAT32", std::move(sizes), k, std::move(variant), {Time("AnyDML", 2)}};
}

std::vector<std::string> Titles(const std::vector<ReportCase>& cases) {
  const Report report{{}, {{"", "", cases}}};
  std::vector<std::string> titles;
  for (const Chart& chart : ChartsOf(cases, SeriesStyles(report))) {
    for (const ChartPanel& panel : chart.panels) titles.push_back(chart.title + ": " + panel.title);
  }
  return titles;
}

TEST(ReportChartsTest, OnePanelPerVariableAndGroup) {
  EXPECT_EQ(Titles({Case({1, 10}, 2)}), std::vector<std::string>());
  EXPECT_EQ(Titles({Case({1, 10}, 2), Case({1, 10}, 2)}), std::vector<std::string>());
  EXPECT_EQ(Titles({Case({1, 10}, 2), Case({1, 20}, 2)}),
            std::vector<std::string>{"TOP_K1 FLOAT32, time against a size: 1×N, K = 2"});
  EXPECT_EQ(Titles({Case({1, 10}, 2), Case({3, 10}, 2), Case({3, 10}, 5)}),
            (std::vector<std::string>{"TOP_K1 FLOAT32, time against a size: N×10, K = 2",
                                      "TOP_K1 FLOAT32, time against K: 3×10"}));
  // Every K in one panel, then each K with its floor and peers. For a single K, no chart is repeated.
  EXPECT_EQ(Titles({Case({1, 10}, 5), Case({1, 20}, 5), Case({1, 10}, 2), Case({1, 20}, 2)}),
            (std::vector<std::string>{"TOP_K1 FLOAT32, time against a size: 1×N, every K",
                                      "TOP_K1 FLOAT32, time against a size: 1×N, K = 2",
                                      "TOP_K1 FLOAT32, time against a size: 1×N, K = 5"}));
  // Cases that differ otherwise, or that have no sizes or K, do not share a chart.
  EXPECT_EQ(Titles({Case({1, 10}, 2), Case({1, 20}, 2, "ascending")}), std::vector<std::string>());
  EXPECT_EQ(Titles({Case({1, 10}, 2), Case({2, 20}, 2)}), std::vector<std::string>());
  EXPECT_EQ(Titles({Case({}, std::nullopt), Case({10}, std::nullopt), Case({20}, std::nullopt)}),
            std::vector<std::string>{"TOP_K1 FLOAT32, time against a size: N"});
}

TEST(ReportChartsTest, OursAreDrawnLastAndPointsByTheirX) {
  ReportCase first = Case({20}, std::nullopt), second = Case({10}, std::nullopt);
  second.times.push_back(Time("torch", 3));
  const Report report{{}, {{"", "", {first, second}}}};
  const std::vector<Chart> charts = ChartsOf(report.sections[0].cases, SeriesStyles(report));
  ASSERT_EQ(charts.size(), 1u);
  ASSERT_EQ(charts[0].panels.size(), 1u);
  const std::vector<ChartSeries>& series = charts[0].panels[0].series;
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].name, "floor");
  EXPECT_EQ(series[1].name, "torch");
  EXPECT_EQ(series[1].points.size(), 1u);
  EXPECT_EQ(series[2].name, "AnyDML");
  ASSERT_EQ(series[2].points.size(), 2u);
  EXPECT_EQ(series[2].points[0].x, 10);
  EXPECT_EQ(series[2].points[1].x, 20);
}

// One case on two adapters; the second is four times as fast.
BenchResults OnTwoAdapters() {
  BenchResults all;
  all.adapters = {{"cpu", "A CPU", 1e9}, {"cuda:0", "A GPU", 1e12}};
  for (const size_t adapter : {0, 1}) {
    BenchResult& result = all.results.emplace_back();
    result.info.name = "OP, \"quoted\"";
    result.info.sizes = {2, 3};
    result.adapter = adapter;
    result.implementation = "some";
    result.bytes = 1000;
    const double seconds = adapter == 0 ? 4e-6 : 1e-6;
    result.end_to_end = result.device = {seconds, seconds, seconds, seconds, seconds};
  }
  return all;
}

TEST(BenchOutputTest, TableComparesWithTheFirstAdapter) {
  const std::string table = BenchTable(OnTwoAdapters());
  EXPECT_NE(table.find("x cpu  implementation"), std::string::npos) << table;
  EXPECT_NE(table.find(" 25 %      1  some\n"), std::string::npos) << table;
  EXPECT_NE(table.find("0.1 %   0.25  some\n"), std::string::npos) << table;
  BenchResults one = OnTwoAdapters();
  one.adapters.pop_back();
  one.results.pop_back();
  EXPECT_EQ(BenchTable(one).find("x cpu"), std::string::npos);
}

TEST(BenchOutputTest, CsvQuotes) {
  EXPECT_NE(BenchCsv(OnTwoAdapters()).find("\n\"OP, \"\"quoted\"\"\",,,2x3,,cpu,some,0,0.004,"),
            std::string::npos);
}

TEST(BenchOutputTest, ReportHasAllAdaptersOfACaseInOne) {
  const ReportSection section = BenchSection(OnTwoAdapters());
  ASSERT_EQ(section.cases.size(), 1u);
  ASSERT_EQ(section.cases[0].times.size(), 4u);
  EXPECT_EQ(section.cases[0].times[0].who, "AnyDML cpu, device");
  EXPECT_EQ(section.cases[0].times[3].who, "AnyDML cuda:0, end to end");
  EXPECT_EQ(section.cases[0].times[0].floor_name, "floor cpu");
  EXPECT_DOUBLE_EQ(section.cases[0].times[0].floor_seconds, 1e-6);
  EXPECT_DOUBLE_EQ(section.cases[0].times[3].floor_seconds, 1e-9);
}

}  // namespace
}  // namespace anydml::client
