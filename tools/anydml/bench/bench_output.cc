#include "anydml/bench/bench_output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "anydml/cli/quantity.h"
#include "anydml/describe/why.h"

namespace anydml::client {
namespace {

using Row = std::vector<std::string>;

double BytesPerSecond(const BenchResult& result) {
  // The clock may be too coarse for a single short execution.
  return static_cast<double>(result.bytes) / std::max(result.device.p50, 1e-9);
}

double FloorSeconds(const BenchResults& all, const BenchResult& result) {
  return static_cast<double>(result.bytes) / all.adapters[result.adapter].bandwidth;
}

// The same case on the first adapter, if it was timed.
const BenchResult* FirstAdapterResult(const BenchResults& all, const BenchResult& result) {
  for (const BenchResult& candidate : all.results) {
    if (candidate.adapter == 0 && candidate.info.name == result.info.name) return &candidate;
  }
  return nullptr;
}

std::string Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool left = i < 2 || i + 1 == row.size();  // names and implementations are left-aligned
      line += StrCat(i > 0 ? "  " : "", left ? "" : blanks, row[i], left ? blanks : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvLine(const Row& row) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) line += StrCat(i > 0 ? "," : "", CsvField(row[i]));
  return line + "\n";
}

void WriteSummary(std::string_view key, const Summary& summary, JsonWriter* json) {
  json->Key(key).BeginObject();
  json->Key("min").Real(1e3 * summary.min);
  json->Key("p50").Real(1e3 * summary.p50);
  json->Key("p90").Real(1e3 * summary.p90);
  json->Key("p99").Real(1e3 * summary.p99);
  json->Key("mean").Real(1e3 * summary.mean);
  json->End();
}

}  // namespace

std::string BenchTable(const BenchResults& all) {
  std::string text;
  for (const BenchAdapter& adapter : all.adapters) {
    text +=
        StrCat(adapter.id, " (", adapter.description, ") copies ", FormatBytes(adapter.bandwidth), "/s\n");
  }
  const bool compare = all.adapters.size() > 1;
  std::vector<Row> rows = {
      {"case", "adapter", "min", "p50", "p90", "p99", "mean", "device", "moved", "GB/s", "of the copy"}};
  if (compare) rows[0].push_back(StrCat("x ", all.adapters[0].id));
  rows[0].emplace_back("implementation");
  for (const BenchResult& result : all.results) {
    Row row = {result.info.name, all.adapters[result.adapter].id};
    const Summary& times = result.end_to_end;
    for (const double seconds : {times.min, times.p50, times.p90, times.p99, times.mean, result.device.p50}) {
      row.push_back(FormatSeconds(seconds));
    }
    const double speed = BytesPerSecond(result);
    row.push_back(FormatBytes(static_cast<double>(result.bytes)));
    row.push_back(FormatNumber(speed * 1e-9));
    const double percent = 100 * speed / all.adapters[result.adapter].bandwidth;
    row.push_back(StrCat(FormatNumber(percent < 10 ? percent : std::round(percent)), " %"));
    if (compare) {
      const BenchResult* first = FirstAdapterResult(all, result);
      row.push_back(first != nullptr ? FormatNumber(times.p50 / first->end_to_end.p50) : "-");
    }
    row.push_back(result.implementation);
    rows.push_back(std::move(row));
  }
  return text + Aligned(rows);
}

std::string BenchCsv(const BenchResults& all) {
  std::string text =
      CsvLine({"case",          "operator",       "type",           "sizes",         "k",
               "adapter",       "implementation", "iterations",     "min_ms",        "p50_ms",
               "p90_ms",        "p99_ms",         "mean_ms",        "device_min_ms", "device_p50_ms",
               "device_p90_ms", "device_p99_ms",  "device_mean_ms", "bytes",         "gb_per_s",
               "copy_gb_per_s", "floor_ms"});
  for (const BenchResult& result : all.results) {
    const BenchCase& info = result.info;
    Row row = {info.name,
               info.op,
               info.type,
               SizesText(info.sizes),
               info.k ? std::to_string(*info.k) : "",
               all.adapters[result.adapter].id,
               result.implementation,
               std::to_string(result.iterations)};
    for (const Summary& times : {result.end_to_end, result.device}) {
      for (const double seconds : {times.min, times.p50, times.p90, times.p99, times.mean}) {
        row.push_back(Number(1e3 * seconds));
      }
    }
    row.push_back(std::to_string(result.bytes));
    row.push_back(Number(1e-9 * BytesPerSecond(result)));
    row.push_back(Number(1e-9 * all.adapters[result.adapter].bandwidth));
    row.push_back(Number(1e3 * FloorSeconds(all, result)));
    text += CsvLine(row);
  }
  return text;
}

void WriteBenchJson(const BenchResults& all, bool why, JsonWriter* json) {
  json->Key("adapters").BeginArray();
  for (const BenchAdapter& adapter : all.adapters) {
    json->BeginObject();
    json->Key("id").String(adapter.id);
    json->Key("description").String(adapter.description);
    json->Key("copyBytesPerSecond").Real(adapter.bandwidth);
    json->End();
  }
  json->End();
  json->Key("cases").BeginArray();
  for (const BenchResult& result : all.results) {
    const BenchCase& info = result.info;
    json->BeginObject();
    json->Key("name").String(info.name);
    json->Key("operator").String(info.op);
    if (!info.sizes.empty()) {
      json->Key("dataType").String(info.type);
      json->Key("sizes").BeginArray();
      for (const uint64_t size : info.sizes) json->Number(size);
      json->End();
    }
    if (info.k) json->Key("k").Number(*info.k);
    json->Key("adapter").String(all.adapters[result.adapter].id);
    json->Key("implementation").String(result.implementation);
    if (why) WriteWhy(result.explanation, json);
    json->Key("iterations").Number(result.iterations);
    WriteSummary("endToEndMs", result.end_to_end, json);
    WriteSummary("deviceMs", result.device, json);
    json->Key("bytesMoved").Number(result.bytes);
    json->Key("bytesPerSecond").Real(BytesPerSecond(result));
    json->Key("shareOfCopy").Real(BytesPerSecond(result) / all.adapters[result.adapter].bandwidth);
    json->Key("floorMs").Real(1e3 * FloorSeconds(all, result));
    json->End();
  }
  json->End();
}

ReportSection BenchSection(const BenchResults& all) {
  ReportSection section{
      "This run",
      "Medians. Device: by the device's clock; end to end: from the submission to the fence. The "
      "floor is the bytes of all inputs and outputs, moved as fast as the adapter copies; data "
      "that stays in a cache can be faster. The spread is from the fastest timing to the 90th percentile.",
      {}};
  for (const BenchResult& result : all.results) {
    const BenchCase& info = result.info;
    if (section.cases.empty() || section.cases.back().name != info.name) {
      section.cases.push_back({info.name, info.op, info.type, info.sizes, info.k, info.variant, {}});
    }
    const std::string where = all.adapters.size() > 1 ? StrCat(" ", all.adapters[result.adapter].id) : "";
    const double floor = FloorSeconds(all, result);
    for (const auto& [what, summary] :
         {std::pair(", device", &result.device), {", end to end", &result.end_to_end}}) {
      section.cases.back().times.push_back({.who = StrCat(kOurs, where, what),
                                            .seconds = std::max(summary->p50, 1e-9),
                                            .floor_name = StrCat("floor", where),
                                            .floor_seconds = floor,
                                            .low = std::max(summary->min, 1e-9),
                                            .high = std::max(summary->p90, 1e-9),
                                            .iterations = result.iterations,
                                            .implementation = result.implementation,
                                            .mark = ""});
    }
  }
  return section;
}

}  // namespace anydml::client
