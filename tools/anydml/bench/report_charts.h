// Which charts a report has.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "anydml/bench/report_data.h"
#include "anydml/bench/svg_chart.h"

namespace anydml::tools {

// Everybody's look, the same in all charts of a report.
class SeriesStyles {
 public:
  explicit SeriesStyles(const Report& report);
  const SeriesStyle& operator[](const std::string& name) const { return styles_.at(name); }

 private:
  void Add(const std::string& name, const char* prefix, size_t* count);

  std::map<std::string, SeriesStyle> styles_;
};

// Time against each dimension of the first input: one chart per operator and type, in it a panel per group of
// cases that differ in that dimension only, and one with ours for every K. Against K where no dimension
// changes.
std::vector<Chart> ChartsOf(std::span<const ReportCase> cases, const SeriesStyles& styles);

}  // namespace anydml::tools
