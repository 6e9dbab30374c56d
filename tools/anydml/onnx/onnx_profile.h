// Where the time of a model goes: a table for people, and a trace file for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "anydml/cli/output.h"

namespace anydml::tools {

// Collects what AnyDmlSetProfiler reports, from its construction to its end; one at a time.
class NodeProfile {
 public:
  NodeProfile();
  ~NodeProfile();
  NodeProfile(const NodeProfile&) = delete;
  NodeProfile& operator=(const NodeProfile&) = delete;

  // A run of the whole model, while nothing else is executed.
  void BeginRun();
  void EndRun();

  // The nodes that took most of the time first; the median of the runs decides.
  void Write(Output* output) const;
  // In the format of Chrome's traces, which Perfetto (ui.perfetto.dev) opens.
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

}  // namespace anydml::tools
