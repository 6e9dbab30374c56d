// What a benchmark report is drawn from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace anydml::tools {

// How long somebody took, and how long moving the bytes alone takes there.
struct ReportTime {
  std::string who;
  double seconds = 0;
  std::string floor_name;
  double floor_seconds = 0;
  double low = 0, high = 0;  // its spread: the fastest, and the slowest or the 90th percentile; 0: not known
  uint64_t iterations = 0;   // 0: not known
  std::string implementation;  // of ours
  std::string mark;            // a letter where a peer's result differs
};

struct ReportCase {
  std::string name;
  std::string op;
  std::string type;             // of the first input, like its sizes
  std::vector<uint64_t> sizes;  // empty: not known
  std::optional<uint64_t> k;    // of operators that have it
  std::string variant;          // what else tells it from the others, for grouping
  std::vector<ReportTime> times;
};

// Cases that were measured in one run, and so may be compared.
struct ReportSection {
  std::string title;
  std::string text;
  std::vector<ReportCase> cases;
};

struct Report {
  std::vector<std::pair<std::string, std::string>> facts;  // about the machine and the run
  std::vector<ReportSection> sections;
};

// The names of ours begin so; everybody else is a peer.
inline constexpr std::string_view kOurs = "AnyDML";

// The records of `./dev bench --json`, one section per number of threads.
Status ReadPeers(const std::string& path, std::vector<ReportSection>* out);

}  // namespace anydml::tools
