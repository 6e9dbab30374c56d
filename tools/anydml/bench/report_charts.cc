#include "anydml/bench/report_charts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "anydml/cli/quantity.h"

namespace anydml::client {
namespace {

// The number of colours in the style sheet; beyond it they repeat.
constexpr size_t kOurColors = 4, kPeerColors = 7;

// A chart's x axis: a dimension of the first input by its index, or K.
constexpr size_t kOverK = SIZE_MAX;

std::string SizesText(const ReportCase& c, size_t variable) {
  std::string text;
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    text += StrCat(i > 0 ? "×" : "", i == variable ? "N" : std::to_string(c.sizes[i]));
  }
  return text;
}

// The properties that all cases of a panel share.
std::string PanelTitle(const ReportCase& c, size_t variable, bool with_k = true) {
  std::string title = SizesText(c, variable);
  if (with_k && c.k && variable != kOverK) title += StrCat(", K = ", *c.k);
  return title;
}

double Value(const ReportCase& c, size_t variable) {
  return static_cast<double>(variable == kOverK ? *c.k : c.sizes[variable]);
}

// The series of this name, which is added if it is new.
ChartSeries& SeriesOf(const std::string& name, const SeriesStyle& style, ChartPanel* panel) {
  for (ChartSeries& series : panel->series) {
    if (series.name == name) return series;
  }
  return panel->series.emplace_back(ChartSeries{name, style, {}});
}

void Sort(ChartPanel* panel) {
  for (ChartSeries& series : panel->series) {
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  }
}

ChartPoint Point(const ReportCase& c, double x, const std::string& who, double seconds) {
  return {x, seconds, StrCat(who, ", ", c.name, ": ", FormatSeconds(seconds, "µ"))};
}

using Cases = std::vector<const ReportCase*>;

ChartPanel Draw(const Cases& cases, size_t variable, const SeriesStyles& styles) {
  ChartPanel panel{PanelTitle(*cases[0], variable), {}};
  for (const ReportCase* c : cases) {
    const double x = Value(*c, variable);
    std::set<std::string> floors;
    for (const ReportTime& time : c->times) {
      if (floors.insert(time.floor_name).second) {
        SeriesOf(time.floor_name, styles[time.floor_name], &panel)
            .points.push_back(Point(*c, x, time.floor_name, time.floor_seconds));
      }
    }
    // From the last one, since ours come first in a case and are drawn over the others.
    for (auto time = c->times.rbegin(); time != c->times.rend(); ++time) {
      SeriesOf(time->who, styles[time->who], &panel).points.push_back(Point(*c, x, time->who, time->seconds));
    }
  }
  Sort(&panel);
  // A peer may be missing in the first case, but ours must come last.
  std::stable_partition(panel.series.begin(), panel.series.end(),
                        [](const ChartSeries& series) { return !series.name.starts_with(kOurs); });
  return panel;
}

// Ours, a line for each K, with the floor of the first.
ChartPanel DrawEveryK(const std::vector<Cases>& of_each_k, size_t variable, const SeriesStyles& styles) {
  // Our variant without our name, for which there is no room.
  const std::string_view what = std::string_view(of_each_k[0][0]->times[0].who).substr(kOurs.size());
  ChartPanel panel{StrCat(PanelTitle(*of_each_k[0][0], variable, false), ", every K", what), {}, true};
  for (const ReportCase* c : of_each_k[0]) {
    const ReportTime& time = c->times[0];
    SeriesOf(time.floor_name, styles[time.floor_name], &panel)
        .points.push_back(Point(*c, Value(*c, variable), time.floor_name, time.floor_seconds));
  }
  for (size_t i = 0; i < of_each_k.size(); ++i) {
    const SeriesStyle style = {StrCat("ours", i % kOurColors), i};
    for (const ReportCase* c : of_each_k[i]) {
      SeriesOf(StrCat("K = ", *c->k), style, &panel)
          .points.push_back(Point(*c, Value(*c, variable), c->times[0].who, c->times[0].seconds));
    }
  }
  Sort(&panel);
  return panel;
}

// Groups of cases that differ in the variable only, if its value changes.
std::vector<Cases> GroupsOf(const Cases& cases, size_t variable) {
  std::map<std::tuple<std::string, std::string, uint64_t>, Cases> groups;
  for (const ReportCase* c : cases) {
    const uint64_t k = variable == kOverK ? 0 : c->k.value_or(0);
    groups[{c->variant, SizesText(*c, variable), k}].push_back(c);
  }
  std::vector<Cases> changing;
  for (auto& [key, group] : groups) {
    std::set<double> values;
    for (const ReportCase* c : group) values.insert(Value(*c, variable));
    if (values.size() > 1) changing.push_back(std::move(group));
  }
  return changing;
}

bool DifferInK(const ReportCase& a, const ReportCase& b, size_t variable) {
  return a.k && b.k && a.variant == b.variant && SizesText(a, variable) == SizesText(b, variable);
}

// Adds one chart of cases with the same operator, type and rank.
void AddChart(const Cases& cases, size_t variable, const SeriesStyles& styles,
              std::set<const ReportCase*>* drawn, std::vector<Chart>* charts) {
  const std::vector<Cases> groups = GroupsOf(cases, variable);
  if (groups.empty()) return;
  const ReportCase& any = *groups[0][0];
  Chart chart{
      StrCat(any.op, " ", any.type, variable == kOverK ? ", time against K" : ", time against a size"),
      variable == kOverK ? "K" : "N, a size of the first input",
      {}};
  for (size_t i = 0; i < groups.size();) {
    size_t end = i + 1;
    while (variable != kOverK && end < groups.size() && DifferInK(*groups[i][0], *groups[end][0], variable))
      ++end;
    if (end - i > 1) {
      const auto first = groups.begin() + static_cast<ptrdiff_t>(i);
      chart.panels.push_back(
          DrawEveryK({first, groups.begin() + static_cast<ptrdiff_t>(end)}, variable, styles));
    }
    for (; i < end; ++i) {
      chart.panels.push_back(Draw(groups[i], variable, styles));
      drawn->insert(groups[i].begin(), groups[i].end());
    }
  }
  charts->push_back(std::move(chart));
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
  // Only ours have the first shape.
  styles_[name] = {StrCat(prefix, color), is_ours ? index * 2 : 1 + index % 6};
}

std::vector<Chart> ChartsOf(std::span<const ReportCase> cases, const SeriesStyles& styles) {
  std::map<std::tuple<std::string, std::string, size_t>, Cases> kinds;
  for (const ReportCase& c : cases) kinds[{c.op, c.type, c.sizes.size()}].push_back(&c);
  std::vector<Chart> charts;
  for (const auto& [kind, alike] : kinds) {
    std::set<const ReportCase*> drawn;
    for (size_t dimension = 0; dimension < std::get<2>(kind); ++dimension) {
      AddChart(alike, dimension, styles, &drawn, &charts);
    }
    // What a panel over a size shows for every K is not drawn over K again.
    Cases rest;
    for (const ReportCase* c : alike) {
      const auto is_new = [&](const ReportCase* other) {
        return !drawn.contains(other) && other->variant == c->variant && other->sizes == c->sizes;
      };
      if (c->k && std::any_of(alike.begin(), alike.end(), is_new)) rest.push_back(c);
    }
    AddChart(rest, kOverK, styles, &drawn, &charts);
  }
  return charts;
}

}  // namespace anydml::client
