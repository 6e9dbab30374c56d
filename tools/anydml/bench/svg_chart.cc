#include "anydml/bench/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "anydml/cli/quantity.h"
#include "base/status.h"

namespace anydml::client {
namespace {

// In SVG units, which are about pixels on a phone.
constexpr double kWidth = 300, kHeight = 216, kLeft = 68, kRight = 288, kTop = 22, kBottom = 178;
constexpr double kLabelWidth = 50, kLabelHeight = 12;

std::string Coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

// Shared by the panels of a chart.
struct Axes {
  LogAxis x, y;
  double right;  // the right end of lines; names may follow

  double X(double value) const { return kLeft + (right - kLeft) * x.Share(value); }
  double Y(double value) const { return kBottom - (kBottom - kTop) * y.Share(value); }
};

template <double ChartPoint::*member>
LogAxis AxisOf(const Chart& chart) {
  double low = INFINITY, high = 0;
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& series : panel.series) {
      for (const ChartPoint& point : series.points) {
        low = std::min(low, point.*member);
        high = std::max(high, point.*member);
      }
    }
  }
  return LogAxis(low, high);
}

Axes AxesOf(const Chart& chart) {
  const bool labelled = std::any_of(chart.panels.begin(), chart.panels.end(),
                                    [](const ChartPanel& panel) { return panel.labelled; });
  return {AxisOf<&ChartPoint::x>(chart), AxisOf<&ChartPoint::y>(chart),
          labelled ? kRight - kLabelWidth : kRight};
}

std::string DrawAxes(const Chart& chart, const Axes& axes) {
  std::string out;
  for (const double tick : axes.x.Ticks()) {
    const std::string x = Coordinate(axes.X(tick));
    out += StrCat("<line class=\"grid\" x1=\"", x, "\" x2=\"", x, "\" y1=\"", kTop, "\" y2=\"", kBottom,
                  "\"/><text x=\"", x, "\" y=\"", kBottom + 16, "\" text-anchor=\"middle\">",
                  FormatCount(tick), "</text>\n");
  }
  for (const double tick : axes.y.Ticks()) {
    const double y = axes.Y(tick);
    out += StrCat("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", axes.right, "\" y1=\"", Coordinate(y),
                  "\" y2=\"", Coordinate(y), "\"/><text x=\"", kLeft - 6, "\" y=\"", Coordinate(y + 4),
                  "\" text-anchor=\"end\">", FormatSeconds(tick, "µ"), "</text>\n");
  }
  return out + StrCat("<text class=\"axis\" x=\"", (kLeft + axes.right) / 2, "\" y=\"", kHeight - 4,
                      "\" text-anchor=\"middle\">", Escape(chart.x_name), "</text>\n",
                      "<text class=\"axis\" transform=\"translate(12 ", (kTop + kBottom) / 2,
                      ") rotate(-90)\" text-anchor=\"middle\">time</text>\n");
}

// The names of lines, right of their ends; if lines end close together, the names are moved below each other.
// The floor's name is in the legend.
std::string DrawLabels(const ChartPanel& panel, const Axes& axes) {
  std::vector<std::pair<double, const ChartSeries*>> labels;
  for (const ChartSeries& series : panel.series) {
    if (!series.style.css_class.starts_with("floor"))
      labels.emplace_back(axes.Y(series.points.back().y) + 4, &series);
  }
  std::sort(labels.begin(), labels.end());
  double top = kTop, bottom = kBottom;
  for (auto& [y, series] : labels) {
    y = std::max(y, top);
    top = y + kLabelHeight;
  }
  std::string out;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    const auto& [wanted, series] = *label;
    const double y = std::min(wanted, bottom);
    bottom = y - kLabelHeight;
    out += StrCat("<text class=\"label\" x=\"", Coordinate(axes.X(series->points.back().x) + 8), "\" y=\"",
                  Coordinate(y), "\">", Escape(series->name), "</text>\n");
  }
  return out;
}

std::string DrawSeries(const ChartSeries& series, const Axes& axes) {
  std::string line, markers;
  for (const ChartPoint& point : series.points) {
    const std::string x = Coordinate(axes.X(point.x)), y = Coordinate(axes.Y(point.y));
    line += StrCat(line.empty() ? "" : " ", x, ",", y);
    markers += StrCat("<g class=\"point\" transform=\"translate(", x, " ", y, ")\"><title>",
                      Escape(point.text), "</title>", DrawMarker(series.style), "</g>\n");
  }
  return StrCat("<g class=\"series ", series.style.css_class, "\">\n<polyline points=\"", line, "\"/>\n",
                markers, "</g>\n");
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += byte < ' ' || byte == 0x7F ? '?' : c;
    }
  }
  return out;
}

LogAxis::LogAxis(double low, double high) : low_(std::log10(low)), high_(std::log10(high)) {
  // Small differences should look small, and there should be at least two numbers.
  const double margin = std::max(0.06 * (high_ - low_), (0.8 - (high_ - low_)) / 2);
  low_ -= margin;
  high_ += margin;
}

double LogAxis::Share(double value) const { return (std::log10(value) - low_) / (high_ - low_); }

std::vector<double> LogAxis::Ticks() const {
  const bool few = high_ - low_ < 2;
  std::vector<double> ticks;
  // Beyond five decades not every one has a number.
  const int step = static_cast<int>(std::ceil((high_ - low_) / 5));
  for (int exponent = static_cast<int>(std::floor(low_)); exponent <= high_; ++exponent) {
    if (exponent % step != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, exponent);
      if ((few || factor == 1.0) && Share(tick) >= 0 && Share(tick) <= 1) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::string DrawMarker(const SeriesStyle& style) {
  if (style.css_class.starts_with("floor")) return "<path class=\"dash\" d=\"M-5 0H5\"/>";
  constexpr const char* kShapes[] = {
      "<path d=\"M0-5.5 5.5 0 0 5.5-5.5 0Z\"/>",          // diamond
      "<circle r=\"4\"/>",                                //
      "<path d=\"M-3.6-3.6H3.6V3.6H-3.6Z\"/>",            // square
      "<path d=\"M0-5 4.8 3.8H-4.8Z\"/>",                 // triangle
      "<path d=\"M0 5 4.8-3.8H-4.8Z\"/>",                 // triangle, upside down
      "<path class=\"dash\" d=\"M-4-4 4 4M-4 4 4-4\"/>",  // cross
      "<path class=\"dash\" d=\"M-5 0H5M0-5V5\"/>",       // plus
  };
  return kShapes[style.marker % std::size(kShapes)];
}

std::string DrawKey(const std::string& name, const SeriesStyle& style) {
  return StrCat("<li class=\"", style.css_class,
                "\"><svg class=\"key\" viewBox=\"-7 -7 14 14\" aria-hidden=\"true\">", DrawMarker(style),
                "</svg>", Escape(name), "</li>");
}

std::string DrawChart(const Chart& chart, std::string_view id) {
  const Axes axes = AxesOf(chart);
  std::string panels, legend;
  std::set<std::string> known;
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const ChartPanel& panel = chart.panels[i];
    std::string names, lines, keys;
    for (const ChartSeries& series : panel.series) {
      names += StrCat(names.empty() ? "" : ", ", series.name);
      lines += DrawSeries(series, axes);
      if (!panel.labelled && known.insert(series.name).second) {
        keys.insert(0, DrawKey(series.name, series.style));  // in the order of drawing, topmost first
      }
    }
    legend += keys;
    if (panel.labelled) lines += DrawLabels(panel, axes);
    const std::string name = StrCat(id, "-", i);
    panels += StrCat("<svg class=\"panel\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                     "\" role=\"img\" aria-labelledby=\"", name, "-t ", name, "-d\">\n<title id=\"", name,
                     "-t\">", Escape(chart.title), panel.title.empty() ? "" : ": ", Escape(panel.title),
                     "</title>\n<desc id=\"", name, "-d\">Time against ", Escape(chart.x_name),
                     ", both logarithmic, of: ", Escape(names), ". The table below has the numbers.</desc>\n",
                     "<text class=\"head\" x=\"", kLeft, "\" y=\"14\">", Escape(panel.title), "</text>\n",
                     DrawAxes(chart, axes), lines, "</svg>\n");
  }
  return StrCat("<figure class=\"chart\">\n<figcaption>", Escape(chart.title),
                "</figcaption>\n<div class=\"panels\">\n", panels, "</div>\n<ul class=\"legend\">", legend,
                "</ul>\n</figure>\n");
}

}  // namespace anydml::client
