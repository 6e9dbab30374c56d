#include "anydml/bench/html_report.h"

#include <algorithm>
#include <cstdio>

#include "anydml/bench/report_charts.h"
#include "anydml/cli/quantity.h"

namespace anydml::client {
namespace {

// The colours can be distinguished with most colour deficiencies; shapes differ, too.
constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/>
<link rel="icon" href="data:,"/>
<title>AnyDML benchmark</title>
<style>
:root {
  --page: #f6f7f9; --card: #fff; --text: #1c2430; --muted: #5b6676; --line: #e1e5ea; --floor0: #1c2430; --floor1: #7b8794;
  --ours0: #c2185b; --ours1: #e67aa5; --ours2: #7b1fa2; --ours3: #b07cc6;
  --peer0: #0b69a3; --peer1: #c05600; --peer2: #1b7f4d; --peer3: #8a6d00; --peer4: #5b4bb7; --peer5: #00808a; --peer6: #7a5c3e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --card: #1a2029; --text: #e6eaf0; --muted: #9aa7b8; --line: #2d3642; --floor0: #e6eaf0; --floor1: #8b98a9;
    --ours0: #ff6ea9; --ours1: #b34a78; --ours2: #d59bf0; --ours3: #8f5fa8;
    --peer0: #5db2f0; --peer1: #ffa24d; --peer2: #57cf93; --peer3: #e3c341; --peer4: #aba0ff; --peer5: #4fd0d8; --peer6: #c9a27e;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem 0.75rem 3rem; background: var(--page); color: var(--text);
  font: 16px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 0.5rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.25rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.5rem; }
p { margin: 0.25rem 0 0.75rem; max-width: 46rem; color: var(--muted); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.5rem 0; font-size: 0.9rem; }
dt { color: var(--muted); }
dd { margin: 0; }
.charts { display: grid; gap: 0.75rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 0.5rem; }
.panel { display: block; width: 100%; height: auto; max-width: 28rem; }
.chart, .distances, details { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.6rem; margin: 0; }
figcaption { font-weight: 600; font-size: 0.95rem; margin-bottom: 0.35rem; }
svg text { font: 12px system-ui, sans-serif; fill: var(--muted); }
svg .axis { font-style: italic; }
svg .head { font-weight: 600; fill: var(--text); }
.grid { stroke: var(--line); stroke-width: 1; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.1rem 0.8rem; margin: 0.3rem 0 0; padding: 0; font-size: 0.82rem; }
.legend li { display: flex; align-items: center; gap: 0.3rem; }
.key { width: 14px; height: 14px; flex: none; }
polyline { fill: none; stroke: var(--c); stroke-width: 1.6; }
[class*="ours"] polyline { stroke-width: 2.6; }
[class*="floor"] polyline { stroke-dasharray: 5 4; }
[class*="ours"], [class*="peer"] { fill: var(--c); }
.dash { stroke: var(--c); stroke-width: 2; fill: none; }
.legend li { fill: var(--c); }
.ours0 { --c: var(--ours0); } .ours1 { --c: var(--ours1); } .ours2 { --c: var(--ours2); } .ours3 { --c: var(--ours3); }
.floor0 { --c: var(--floor0); } .floor1 { --c: var(--floor1); }
.peer0 { --c: var(--peer0); } .peer1 { --c: var(--peer1); } .peer2 { --c: var(--peer2); } .peer3 { --c: var(--peer3); }
.peer4 { --c: var(--peer4); } .peer5 { --c: var(--peer5); } .peer6 { --c: var(--peer6); }
.row { display: grid; grid-template-columns: 1fr; border-top: 1px solid var(--line); padding: 0.15rem 0; font-size: 0.82rem; }
.row svg { display: block; width: 100%; height: 20px; overflow: visible; }
.row .track { padding: 0 0.6rem; }
@media (min-width: 48rem) { .row { grid-template-columns: 20rem 1fr; align-items: center; } }
details { margin-top: 0.75rem; }
summary { cursor: pointer; font-weight: 600; font-size: 0.95rem; }
.hint { display: none; margin: 0.4rem 0 0; font-size: 0.82rem; }
@media (max-width: 60rem) { .hint { display: block; } }
/* A shadow at an edge beyond which the table goes on: the covers scroll along, the shadows stay. */
.scroll { overflow-x: auto; margin-top: 0.5rem; background:
  linear-gradient(to right, var(--card) 2rem, transparent) local, linear-gradient(to left, var(--card) 2rem, transparent) local,
  linear-gradient(to right, var(--muted), transparent 0.9rem), linear-gradient(to left, var(--muted), transparent 0.9rem);
  background-position: left, right, left, right; background-repeat: no-repeat; background-size: 4rem 100%, 4rem 100%, 0.9rem 100%, 0.9rem 100%; }
table { border-collapse: collapse; font-size: 0.82rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
</style>
</head>
<body>
<main>
<h1>AnyDML benchmark</h1>
)";

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%", 100 * share);
  return text;
}

std::string Ratio(const ReportTime& time) { return FormatNumber(time.seconds / time.floor_seconds) + "×"; }

// A mark at a fraction of the width, whatever the width is.
std::string MarkAt(const LogAxis& axis, double value, const SeriesStyle& style, const std::string& text) {
  return StrCat("<svg class=\"point ", style.css_class, "\" x=\"", Percent(axis.Share(value)),
                "\" y=\"50%\" overflow=\"visible\"><title>", Escape(text), "</title>", DrawMarker(style),
                "</svg>");
}

std::string LineAt(const LogAxis& axis, double value, const char* css_class) {
  const std::string x = Percent(axis.Share(value));
  return StrCat("<line class=\"", css_class, "\" x1=\"", x, "\" x2=\"", x, "\" y1=\"0\" y2=\"100%\"/>");
}

// One row per case: all times as multiples of the floor.
std::string DrawDistances(const std::vector<ReportCase>& cases, const SeriesStyles& styles) {
  double low = 1, high = 1;
  std::vector<std::string> names;
  for (const ReportCase& c : cases) {
    for (const ReportTime& time : c.times) {
      low = std::min(low, time.seconds / time.floor_seconds);
      high = std::max(high, time.seconds / time.floor_seconds);
      if (std::find(names.begin(), names.end(), time.who) == names.end()) names.push_back(time.who);
    }
  }
  const LogAxis axis(low, high);
  std::string grid, numbers, legend;
  for (const double tick : axis.Ticks()) {
    grid += LineAt(axis, tick, "grid");
    numbers += StrCat("<text x=\"", Percent(axis.Share(tick)), "\" y=\"15\" text-anchor=\"middle\">",
                      FormatNumber(tick), "×</text>");
  }
  for (const std::string& name : names) legend += DrawKey(name, styles[name]);
  numbers = StrCat("<div class=\"row\"><div></div><div class=\"track\"><svg aria-hidden=\"true\">", numbers,
                   "</svg></div></div>\n");
  std::string rows;
  for (const ReportCase& c : cases) {
    std::string marks = LineAt(axis, 1, "dash floor0"), spoken;
    // Ours come first in a case and are drawn on top.
    for (auto time = c.times.rbegin(); time != c.times.rend(); ++time) {
      const std::string text = StrCat(time->who, ": ", Ratio(*time), " the floor");
      marks += MarkAt(axis, time->seconds / time->floor_seconds, styles[time->who], text);
      spoken += StrCat(spoken.empty() ? "" : ", ", text);
    }
    rows += StrCat("<div class=\"row\"><div>", Escape(c.name),
                   "</div><div class=\"track\"><svg role=\"img\"><title>", Escape(spoken), "</title>", grid,
                   marks, "</svg></div></div>\n");
  }
  // Numbers at both ends, since there can be many rows in between.
  return StrCat("<div class=\"distances\">\n<ul class=\"legend\">", legend, "</ul>\n", numbers, rows, numbers,
                "</div>\n");
}

std::string Spread(const ReportTime& time) {
  if (time.low <= 0 || time.high <= 0) return "-";
  return StrCat(FormatSeconds(time.low, "µ"), " – ", FormatSeconds(time.high, "µ"));
}

std::string DrawTable(const std::vector<ReportCase>& cases) {
  std::string rows;
  for (const ReportCase& c : cases) {
    for (const ReportTime& time : c.times) {
      rows += StrCat("<tr><td>", Escape(c.name), "</td><td>", Escape(time.who), "</td><td>",
                     FormatSeconds(time.seconds, "µ"), time.mark.empty() ? "" : " ", Escape(time.mark),
                     "</td><td>", Spread(time), "</td><td>",
                     time.iterations > 0 ? std::to_string(time.iterations) : "-", "</td><td>",
                     FormatSeconds(time.floor_seconds, "µ"), "</td><td>", Ratio(time), "</td><td>",
                     Escape(time.implementation.empty() ? "-" : time.implementation), "</td></tr>\n");
    }
  }
  return StrCat(
      "<details><summary>All numbers</summary>\n<p class=\"hint\">The table is wider than a small screen: "
      "it scrolls sideways.</p>\n<div class=\"scroll\" tabindex=\"0\"><table>\n",
      "<tr><th scope=\"col\">case</th><th scope=\"col\">who</th><th scope=\"col\">time</th>"
      "<th scope=\"col\">spread</th><th scope=\"col\">iterations</th><th scope=\"col\">floor</th>"
      "<th scope=\"col\">times the floor</th><th scope=\"col\">implementation</th></tr>\n",
      rows, "</table></div></details>\n");
}

std::string DrawSection(const ReportSection& section, const SeriesStyles& styles, size_t number) {
  std::string out =
      StrCat("<section>\n<h2>", Escape(section.title), "</h2>\n<p>", Escape(section.text), "</p>\n");
  const std::vector<Chart> charts = ChartsOf(section.cases, styles);
  if (!charts.empty()) {
    out += "<h3>Time against size and K</h3>\n<div class=\"charts\">\n";
    for (size_t i = 0; i < charts.size(); ++i) out += DrawChart(charts[i], StrCat("c", number, "-", i));
    out += "</div>\n";
  }
  return out + "<h3>Distance from the floor</h3>\n" + DrawDistances(section.cases, styles) +
         DrawTable(section.cases) + "</section>\n";
}

}  // namespace

std::string HtmlReport(const Report& report) {
  std::string page = kHead;
  page += "<dl>\n";
  for (const auto& [name, text] : report.facts) {
    page += StrCat("<dt>", Escape(name), "</dt><dd>", Escape(text), "</dd>\n");
  }
  page += "</dl>\n";
  const SeriesStyles styles(report);
  for (size_t i = 0; i < report.sections.size(); ++i) {
    if (!report.sections[i].cases.empty()) page += DrawSection(report.sections[i], styles, i);
  }
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace anydml::client
