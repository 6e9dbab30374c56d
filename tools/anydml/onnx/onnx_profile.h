// Where a model spends its time: a table, and a trace file for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "anydml/cli/output.h"

namespace anydml::client {

// Collects what AnyDmlSetProfiler reports, from construction to destruction; one at a time.
class NodeProfile {
 public:
  NodeProfile();
  ~NodeProfile();
  NodeProfile(const NodeProfile&) = delete;
  NodeProfile& operator=(const NodeProfile&) = delete;

  // Starts a run of the whole model; nothing else may execute meanwhile.
  void BeginRun();
  void EndRun();

  // The slowest nodes first; by the median of the runs.
  void Write(Output* output) const;
  // In Chrome's trace format, which Perfetto (ui.perfetto.dev) opens.
  std::string Trace() const;

 private:
  struct Span {
    uint32_t name = 0;  // in names_
    uint64_t begin = 0;
    uint64_t end = 0;  // nanoseconds of the steady clock
  };
  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<Span> nodes;
  };
  struct Row {
    uint32_t name = 0;
    double seconds = 0;
    uint64_t calls = 0;
  };

  static void Record(void* context, const char* node, uint64_t begin, uint64_t end);
  std::vector<Row> Rows(const Run& run) const;

  std::map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
  std::vector<Run> runs_;
};

}  // namespace anydml::client
