#include "anydml/onnx/onnx_profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <anydml.h>

#include "anydml/cli/quantity.h"
#include "client/text.h"

namespace anydml::client {
namespace {

constexpr int kDigits = 15;          // enough for nanoseconds of days
constexpr size_t kMostRows = 30;     // in the table; JSON and the trace have all
constexpr size_t kNameColumns = 96;  // chains of fused nodes can be long

uint64_t Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

double Seconds(uint64_t begin, uint64_t end) { return static_cast<double>(end - begin) * 1e-9; }

std::string Line(double seconds, double share, uint64_t calls, std::string name) {
  if (name.size() > kNameColumns) {  // the end contains the implementation
    name = name.substr(0, kNameColumns / 2) + " ... " + name.substr(name.size() - kNameColumns / 2);
  }
  char numbers[64];
  std::snprintf(numbers, sizeof(numbers), "%9s %5.1f %% %5llux  ", FormatSeconds(seconds).c_str(),
                share * 100, static_cast<unsigned long long>(calls));
  return StrCat(numbers, name, "\n");
}

void AppendEvent(const std::string& name, uint64_t begin, uint64_t end, uint64_t thread, JsonWriter* json) {
  json->BeginObject();
  json->Key("name").String(name);
  json->Key("ph").String("X");
  json->Key("pid").Number(1);
  json->Key("tid").Number(thread);
  json->Key("ts").Real(static_cast<double>(begin) * 1e-3, kDigits);  // microseconds
  json->Key("dur").Real(static_cast<double>(end - begin) * 1e-3, kDigits);
  json->End();
}

}  // namespace

NodeProfile::NodeProfile() { AnyDmlSetProfiler(Record, this); }
NodeProfile::~NodeProfile() { AnyDmlSetProfiler(nullptr, nullptr); }

void NodeProfile::BeginRun() { runs_.push_back({Now(), 0, {}}); }
void NodeProfile::EndRun() { runs_.back().end = Now(); }

void NodeProfile::Record(void* context, const char* node, uint64_t begin, uint64_t end) {
  auto* const self = static_cast<NodeProfile*>(context);
  if (self->runs_.empty()) return;
  const auto [found, added] = self->numbers_.try_emplace(node, static_cast<uint32_t>(self->names_.size()));
  if (added) self->names_.emplace_back(node);
  self->runs_.back().nodes.push_back({found->second, begin, end});
}

std::vector<NodeProfile::Row> NodeProfile::Rows(const Run& run) const {
  std::vector<Row> rows(names_.size());
  for (const Span& span : run.nodes) {
    rows[span.name].seconds += Seconds(span.begin, span.end);
    ++rows[span.name].calls;
  }
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i].name = i;
  std::erase_if(rows, [](const Row& row) { return row.calls == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

void NodeProfile::Write(Output* output) const {
  // The median is one of the runs, so that its nodes add up.
  std::vector<const Run*> runs;
  for (const Run& run : runs_) runs.push_back(&run);
  std::sort(runs.begin(), runs.end(),
            [](const Run* a, const Run* b) { return a->end - a->begin < b->end - b->begin; });
  const Run& run = *runs[runs.size() / 2];
  const double total = Seconds(run.begin, run.end);
  const std::vector<Row> rows = Rows(run);
  double in_nodes = 0;
  for (const Row& row : rows) in_nodes += row.seconds;

  JsonWriter& json = output->document();
  json.Key("profile").BeginObject();
  json.Key("seconds").Real(total);
  json.Key("nodes").BeginArray();
  output->Text(StrCat("a run of ", FormatSeconds(total), ", by the nodes of the compiled graphs:\n"));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& name = names_[rows[i].name];
    if (i < kMostRows)
      output->Text(Line(rows[i].seconds, rows[i].seconds / total, rows[i].calls, ForTerminal(name)));
    json.BeginObject();
    json.Key("name").String(name);
    json.Key("seconds").Real(rows[i].seconds);
    json.Key("calls").Number(rows[i].calls);
    json.End();
  }
  json.End();
  json.End();
  if (rows.empty()) {
    output->Text("no node of a graph was run: the host computed everything\n");
    return;
  }
  double rest = 0;
  for (size_t i = kMostRows; i < rows.size(); ++i) rest += rows[i].seconds;
  if (rows.size() > kMostRows) output->Text(Line(rest, rest / total, rows.size() - kMostRows, "other nodes"));
  const double outside = std::max(0.0, total - in_nodes);
  output->Text(Line(outside, outside / total, 1,
                    "outside of nodes: inputs and outputs, submission, the host's operators"));
}

std::string NodeProfile::Trace() const {
  JsonWriter json;
  json.BeginObject();
  json.Key("traceEvents").BeginArray();
  const uint64_t zero = runs_.empty() ? 0 : runs_.front().begin;
  for (size_t i = 0; i < runs_.size(); ++i) {
    AppendEvent(StrCat("run ", i + 1), runs_[i].begin - zero, runs_[i].end - zero, 1, &json);
    for (const Span& span : runs_[i].nodes)
      AppendEvent(names_[span.name], span.begin - zero, span.end - zero, 2, &json);
  }
  json.End();
  json.Key("displayTimeUnit").String("ms");
  json.End();
  return json.text() + "\n";
}

}  // namespace anydml::client
