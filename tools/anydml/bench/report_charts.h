// Selects the charts of a report.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "anydml/bench/report_data.h"
#include "anydml/bench/svg_chart.h"

namespace anydml::client {

// The look of all series, the same in all charts of a report.
class SeriesStyles {
 public:
  explicit SeriesStyles(const Report& report);
  const SeriesStyle& operator[](const std::string& name) const { return styles_.at(name); }

 private:
  void Add(const std::string& name, const char* prefix, size_t* count);

  std::map<std::string, SeriesStyle> styles_;
};

// Charts of time over each dimension of the first input, one per operator and type; each has a panel per
// group of cases that differ in that dimension only, and one with ours for every K. Over K if no dimension
// changes.
std::vector<Chart> ChartsOf(std::span<const ReportCase> cases, const SeriesStyles& styles);

}  // namespace anydml::client
