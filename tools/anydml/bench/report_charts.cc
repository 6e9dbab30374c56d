#include "anydml/bench/report_charts.h"

#include <algorithm>
#include <set>

#include "anydml/cli/quantity.h"

namespace anydml::tools {
namespace {

// The colours that the style sheet has; after the last one they begin again.
constexpr size_t kOurColors = 4, kPeerColors = 7;

// What a chart's x axis is: a dimension of the first input by its index, or K.
constexpr size_t kOverK = SIZE_MAX;

std::string SizesText(const ReportCase& c, size_t variable) {
  std::string text;
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    text += StrCat(i > 0 ? "×" : "", i == variable ? "N" : std::to_string(c.sizes[i]));
  }
  return text;
}

// The same for all cases of a chart.
std::string Title(const ReportCase& c, size_t variable) {
  std::string title = StrCat(c.op, " ", c.type, ", ", SizesText(c, variable));
  if (c.k && variable != kOverK) title += StrCat(", K = ", *c.k);
  return title;
}

double Value(const ReportCase& c, size_t variable) {
  return static_cast<double>(variable == kOverK ? *c.k : c.sizes[variable]);
}

// The series of this name, added when it is new.
ChartSeries& SeriesOf(const std::string& name, const SeriesStyles& styles, Chart* chart) {
  for (ChartSeries& series : chart->series) {
    if (series.name == name) return series;
  }
  return chart->series.emplace_back(ChartSeries{name, styles[name], {}});
}

ChartPoint Point(const ReportCase& c, double x, const std::string& who, double seconds) {
  return {x, seconds, StrCat(who, ", ", c.name, ": ", FormatSeconds(seconds, "µ"))};
}

Chart Draw(const std::vector<const ReportCase*>& cases, size_t variable, const SeriesStyles& styles) {
  Chart chart{Title(*cases[0], variable), variable == kOverK ? "K" : "N", {}};
  for (const ReportCase* c : cases) {
    const double x = Value(*c, variable);
    std::set<std::string> floors;
    for (const ReportTime& time : c->times) {
      if (floors.insert(time.floor_name).second) {
        SeriesOf(time.floor_name, styles, &chart)
            .points.push_back(Point(*c, x, time.floor_name, time.floor_seconds));
      }
    }
    // From the last one: ours come first in a case, and are drawn over the others.
    for (auto time = c->times.rbegin(); time != c->times.rend(); ++time) {
      SeriesOf(time->who, styles, &chart).points.push_back(Point(*c, x, time->who, time->seconds));
    }
  }
  for (ChartSeries& series : chart.series) {
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  }
  // A peer may be missing in the first case: ours last all the same.
  std::stable_partition(chart.series.begin(), chart.series.end(),
                        [](const ChartSeries& series) { return !series.name.starts_with(kOurs); });
  return chart;
}

}  // namespace

SeriesStyles::SeriesStyles(const Report& report) {
  size_t ours = 0, peers = 0, floors = 0;
  for (const ReportSection& section : report.sections) {
    for (const ReportCase& c : section.cases) {
      for (const ReportTime& time : c.times) {
        const bool is_ours = time.who.starts_with(kOurs);
        Add(time.who, is_ours ? "ours" : "peer", is_ours ? &ours : &peers);
        Add(time.floor_name, "floor", &floors);
      }
    }
  }
}

void SeriesStyles::Add(const std::string& name, const char* prefix, size_t* count) {
  if (styles_.contains(name)) return;
  const bool is_ours = *prefix == 'o';
  const size_t index = (*count)++;
  const size_t color = is_ours ? index % kOurColors : *prefix == 'p' ? index % kPeerColors : index % 2;
  // The first shape is ours only.
  styles_[name] = {StrCat(prefix, color), is_ours ? index * 2 : 1 + index % 6};
}

std::vector<Chart> ChartsOf(std::span<const ReportCase> cases, const SeriesStyles& styles) {
  size_t rank = 0;
  for (const ReportCase& c : cases) rank = std::max(rank, c.sizes.size());
  std::vector<size_t> variables(rank);
  for (size_t i = 0; i < rank; ++i) variables[i] = i;
  variables.push_back(kOverK);
  std::vector<Chart> charts;
  for (const size_t variable : variables) {
    std::vector<std::pair<std::string, std::vector<const ReportCase*>>> groups;
    for (const ReportCase& c : cases) {
      if (variable == kOverK ? !c.k.has_value() : variable >= c.sizes.size()) continue;
      const std::string key = StrCat(Title(c, variable), "|", c.variant);
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&key](const auto& candidate) { return candidate.first == key; });
      if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
      group->second.push_back(&c);
    }
    for (const auto& [key, group] : groups) {
      std::set<double> values;
      for (const ReportCase* c : group) values.insert(Value(*c, variable));
      if (values.size() > 1) charts.push_back(Draw(group, variable, styles));
    }
  }
  return charts;
}

}  // namespace anydml::tools
