// Charts with two logarithmic axes, as SVG inside an HTML page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anydml::tools {

// Text as HTML or XML, also inside attributes.
std::string Escape(std::string_view text);

struct ChartPoint {
  double x = 0, y = 0;  // above 0
  std::string text;     // shown when pointed at
};

// How a series looks: the page's style sheet has the colours of these classes.
struct SeriesStyle {
  std::string css_class;  // "ours0", "peer3", "floor"
  size_t marker = 0;      // one of a few shapes; not of floors, which are dashed lines
};

struct ChartSeries {
  std::string name;
  SeriesStyle style;
  std::vector<ChartPoint> points;  // by ascending x
};

struct ChartPanel {
  std::string title;                // empty where there is one panel only
  std::vector<ChartSeries> series;  // later ones are drawn over earlier ones
  bool labelled = false;            // the names stand at the lines, since the legend has not got them
};

// Small multiples: panels with the same axes, to be compared at a glance.
struct Chart {
  std::string title;
  std::string x_name;
  std::vector<ChartPanel> panels;
};

// A <figure> with one legend. `id` is unique on the page. y are seconds.
std::string DrawChart(const Chart& chart, std::string_view id);

// A shape around (0, 0).
std::string DrawMarker(const SeriesStyle& style);

// An entry of a legend, which is a list.
std::string DrawKey(const std::string& name, const SeriesStyle& style);

// The inside of a logarithmic axis: its ends, and which numbers to write.
class LogAxis {
 public:
  // `low` and `high` above 0. Both end up a little inside.
  LogAxis(double low, double high);

  double Share(double value) const;  // 0 to 1
  // Powers of ten; and twice and five times them when those are few.
  std::vector<double> Ticks() const;

 private:
  double low_, high_;  // decimal logarithms
};

}  // namespace anydml::tools
