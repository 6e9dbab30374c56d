// Charts with two logarithmic axes, as SVG inside an HTML page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace anydml::client {

// Escapes text for HTML or XML, also inside attributes.
std::string Escape(std::string_view text);

struct ChartPoint {
  double x = 0, y = 0;  // above 0
  std::string text;     // tooltip
};

// The look of a series; the page's style sheet has the colours of the classes.
struct SeriesStyle {
  std::string css_class;  // "ours0", "peer3", "floor"
  size_t marker = 0;      // one of a few shapes; unused for floors, which are dashed lines
};

struct ChartSeries {
  std::string name;
  SeriesStyle style;
  std::vector<ChartPoint> points;  // by ascending x
};

struct ChartPanel {
  std::string title;                // empty if there is only one panel
  std::vector<ChartSeries> series;  // later ones are drawn over earlier ones
  bool labelled = false;            // names are at the lines instead of in the legend
};

// Small multiples: panels with the same axes, for comparison at a glance.
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

// A logarithmic axis: its ends, and which numbers to write.
class LogAxis {
 public:
  // `low` and `high` must be above 0. The axis extends slightly beyond both.
  LogAxis(double low, double high);

  double Share(double value) const;  // 0 to 1
  // Powers of ten; with few of them also twice and five times these.
  std::vector<double> Ticks() const;

 private:
  double low_, high_;  // decimal logarithms
};

}  // namespace anydml::client
