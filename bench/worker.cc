// Times AnyDML, the floors and the standard library's baselines for bench/run.py.
//
// Reads requests from the standard input, one per line: a command and key=value words. Answers each with one
// line of JSON. All files are in the current folder.
//
//   prepare CASE        makes the input files
//   reference CASE      runs cpu.reference; its results are expected for later cases, also those that differ
//   in K only
//   expect CASE file=F  expects the reference's outputs or, with a file, its float64 numbers
//   compare prefix=P    compares P.values.bin and P.indices.bin with the expected results
//   load CASE           prepares the case; answers the names of the runs
//   check run=R prefix=P      runs once and writes the outputs
//   time run=R n=N warm=W     answers the milliseconds of N runs after W untimed ones
//
// For bench/gpu.py:
//   load CASE copies=C  only AnyDML, with C copies of the buffers
//   device n=N warm=W   answers the milliseconds by the device's clock, N times
//   bandwidth           answers the bytes that a copy in the device's memory moves per millisecond
//   unload              frees the case
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <anydml.h>

#include "baselines.h"
#include "case.h"
#include "compare.h"
#include "dml.h"
#include "floor.h"

namespace anydml::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kOurs[] = "anydml";
constexpr char kFloor[] = "floor:";

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

template <typename Range, typename Format>
std::string List(const Range& range, Format format) {
  std::string text = "[";
  for (const auto& element : range) text += (text.size() > 1 ? ", " : "") + format(element);
  return text + "]";
}

std::string Numbers(const std::vector<double>& numbers) {
  return List(numbers, [](double number) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", number);
    return std::string(text);
  });
}

uint32_t Count(const Words& words, const char* key) {
  return static_cast<uint32_t>(std::stoul(words.at(key)));
}

class Worker {
 public:
  std::string Answer(const std::string& command, const Words& words) {
    if (command == "prepare") return Prepare(words);
    if (command == "reference") return RunReference(words);
    if (command == "expect") return Expect(words);
    if (command == "compare") return CompareOutputs(words);
    if (command == "load") return Load(words);
    if (command == "check") return Check(words.at("run"), words.at("prefix"));
    if (command == "time") return Time(words);
    if (command == "unload") return Unload();
    if (command == "device")
      return "{\"ms\": " + Numbers(ours_->TimeOnDevice(Count(words, "n"), Count(words, "warm"))) + "}";
    if (command == "bandwidth") return "{\"bytes_per_ms\": " + std::to_string(CopyBandwidth()) + "}";
    throw std::runtime_error("unknown command: " + command);
  }

 private:
  // Does not repeat the previous preparation.
  std::string Prepare(const Words& words) {
    case_ = ParseCase(words);
    if (case_.inputs_text == prepared_) return "{}";
    prepared_.clear();
    WriteInputs(case_);
    inputs_ = ReadInputs(case_);
    prepared_ = case_.inputs_text;
    return "{}";
  }

  std::string RunReference(const Words& words) {
    Case c = ParseCase(words);
    if (c.result_text == reference_case_.result_text) return "{}";
    c.in_place = false;
    c.dispatches = 1;
    DmlRun reference(c, inputs_, "cpu.reference");
    reference.Run();
    reference_ = reference.ReadOutputs();
    reference_case_ = std::move(c);
    return "{}";
  }

  std::string Expect(const Words& words) {
    case_ = ParseCase(words);
    expected_ = {};
    if (!words.count("file")) {
      expected_.outputs = Shortened(reference_, reference_case_, case_);
      return "{}";
    }
    const Bytes bytes = ReadFile(words.at("file"));
    expected_.values.resize(bytes.size() / sizeof(double));
    std::memcpy(expected_.values.data(), bytes.data(), bytes.size());
    if (expected_.values.size() != ElementCount(*case_.desc.outputs()[0])) {
      throw std::runtime_error(words.at("file") + " is of another size");
    }
    return "{}";
  }

  std::string CompareOutputs(const Words& words) {
    const std::string& prefix = words.at("prefix");
    std::vector<Bytes> outputs{ReadFile(prefix + ".values.bin")};
    if (case_.Is("TOP_K1")) outputs.push_back(ReadFile(prefix + ".indices.bin"));
    return "{\"verdict\": " + Quoted(Compare(case_, inputs_, expected_, outputs)) + "}";
  }

  std::string Load(const Words& words) {
    Unload();
    const Case c = ParseCase(words);
    const Inputs inputs = ReadInputs(c);
    const char* threads = std::getenv("ANYDML_THREADS");
    dispatches_ = c.dispatches;
    if (words.count("copies")) {
      ours_ = std::make_unique<DmlRun>(c, inputs, "", Count(words, "copies"));
      return "{\"implementation\": " + Quoted(ours_->implementation()) + "}";
    }
    ours_ = std::make_unique<DmlRun>(c, inputs, "");
    floor_ = std::make_unique<Floor>(c, inputs, threads ? std::max(1, std::atoi(threads)) : 1);
    baselines_ = std::make_unique<Baselines>(c, inputs);
    const auto quoted = [](const std::string& name) { return Quoted(name); };
    const auto floor_name = [](const std::string& name) { return Quoted(kFloor + name); };
    return "{\"runs\": [\"anydml\"], \"floors\": " + List(floor_->variants(), floor_name) +
           ", \"single\": " + List(baselines_->variants(), quoted) +
           ", \"implementation\": " + Quoted(ours_->implementation()) + "}";
  }

  void Run(const std::string& name) {
    if (name == kOurs) {
      ours_->Run();
    } else {
      baselines_->Run(name);
    }
  }

  std::string Check(const std::string& name, const std::string& prefix) {
    Run(name);
    const std::vector<Bytes> outputs = name == kOurs ? ours_->ReadOutputs() : baselines_->ReadOutputs();
    WriteFile(prefix + ".values.bin", outputs[0]);
    if (outputs.size() > 1) WriteFile(prefix + ".indices.bin", outputs[1]);
    return "{}";
  }

  std::string Time(const Words& words) {
    const std::string& name = words.at("run");
    const uint32_t count = Count(words, "n"), warm = Count(words, "warm");
    std::vector<double> times;
    if (name.starts_with(kFloor)) {
      times = floor_->Time(name.substr(sizeof(kFloor) - 1), count, warm);
    } else {
      for (uint32_t i = 0; i < warm + count; ++i) {
        const auto start = Clock::now();
        Run(name);
        const std::chrono::duration<double, std::milli> duration = Clock::now() - start;
        if (i >= warm) times.push_back(duration.count() / dispatches_);
      }
    }
    return "{\"ms\": " + Numbers(times) + "}";
  }

  std::string Unload() {
    ours_.reset();
    floor_.reset();
    baselines_.reset();
    return "{}";
  }

  std::string prepared_;  // names the inputs that `inputs_` holds
  Inputs inputs_;
  Case reference_case_;
  std::vector<Bytes> reference_;
  Case case_;
  Expected expected_;
  // What was loaded.
  std::unique_ptr<DmlRun> ours_;
  std::unique_ptr<Floor> floor_;
  std::unique_ptr<Baselines> baselines_;
  uint32_t dispatches_ = 1;
};

}  // namespace
}  // namespace anydml::bench

int main() {
  using namespace anydml::bench;
  Worker worker;
  std::cout << "{\"name\": \"anydml\", \"version\": \"" << AnyDmlGetVersion() << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    std::string command, word;
    stream >> command;
    Words words;
    while (stream >> word) {
      const size_t equals = word.find('=');
      words[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
    }
    try {
      std::cout << worker.Answer(command, words) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "{\"error\": " << Quoted(error.what()) << "}" << std::endl;
    }
  }
  return 0;
}
