#include "anydml/json/junit.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>

#include "base/status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

// For attributes, too. What XML cannot represent (control characters, other encodings) becomes '?'.
std::string Escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(sequence.size());
    const bool no_character = sequence == "\uFFFE" || sequence == "\uFFFF";
    if (length == 0 || static_cast<unsigned char>(sequence[0]) < 0x20 || no_character) {
      result += '?';
    } else if (sequence == "&") {
      result += "&amp;";
    } else if (sequence == "<") {
      result += "&lt;";
    } else if (sequence == ">") {
      result += "&gt;";
    } else if (sequence == "\"") {
      result += "&quot;";
    } else {
      result += sequence;
    }
  }
  return result;
}

std::string Milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", seconds);
  return text;
}

// tests="3" failures="1" skipped="0" time="0.125"
std::string Totals(std::span<const JunitCase> cases) {
  size_t failures = 0, skipped = 0;
  double seconds = 0;
  for (const JunitCase& test : cases) {
    failures += test.outcome == JunitCase::Outcome::kFailed;
    skipped += test.outcome == JunitCase::Outcome::kSkipped;
    seconds += test.seconds;
  }
  return StrCat("tests=\"", cases.size(), "\" failures=\"", failures, "\" skipped=\"", skipped,
                "\" errors=\"0\" time=\"", Milliseconds(seconds), "\"");
}

std::string CaseXml(const JunitCase& test) {
  std::string xml = StrCat("    <testcase classname=\"", Escaped(test.suite), "\" name=\"",
                           Escaped(test.name), "\" time=\"", Milliseconds(test.seconds), "\"");
  if (test.outcome == JunitCase::Outcome::kPassed) return xml + "/>\n";
  const char* element = test.outcome == JunitCase::Outcome::kFailed ? "failure" : "skipped";
  return xml + StrCat(">\n      <", element, " message=\"", Escaped(test.message), "\"/>\n    </testcase>\n");
}

}  // namespace

std::string JunitXml(const std::vector<JunitCase>& cases) {
  std::string xml = StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ", Totals(cases), ">\n");
  for (size_t begin = 0, end = 0; begin < cases.size(); begin = end) {
    while (end < cases.size() && cases[end].suite == cases[begin].suite) ++end;
    const std::span<const JunitCase> suite = std::span(cases).subspan(begin, end - begin);
    xml += StrCat("  <testsuite name=\"", Escaped(suite.front().suite), "\" ", Totals(suite), ">\n");
    for (const JunitCase& test : suite) xml += CaseXml(test);
    xml += "  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

}  // namespace anydml::client
