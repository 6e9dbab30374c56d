// What is measured: one operator, its sizes and where its data comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace anydml::bench {

using Bytes = std::vector<std::byte>;
using Words = std::map<std::string, std::string>;  // a request's key=value pairs

struct Case {
  std::string op;  // "topk" or "scatter"
  std::string type;
  std::vector<uint32_t> sizes;
  std::string data;  // see MakeInput
  // topk
  uint32_t axis = 0;
  uint32_t k = 0;
  // scatter
  uint32_t tuples = 0;
  uint32_t tuple_size = 0;
  bool in_place = false;
  uint32_t dispatches = 1;  // in one command list
  std::string floor;        // "" or, for latencies, what stands in for it

  uint64_t elements() const;
  uint32_t element_bytes() const;
  // topk: consecutive elements of a sequence are this many elements apart.
  uint64_t axis_stride() const;
  // scatter: elements that one tuple updates.
  uint64_t slice() const;
};

// Throws std::runtime_error, as everything here does.
Case ParseCase(const Words& words);

// The files of the current folder that all workers share.
struct Inputs {
  Bytes input;
  Bytes indices;  // uint32
  Bytes updates;
};
void WriteInputs(const Case& c);
Inputs ReadInputs(const Case& c);
Bytes ReadFile(const std::string& path);
void WriteFile(const std::string& path, const Bytes& bytes);

// Compares a worker's outputs with the reference's: "equal" (bit for bit), "ties" (the same
// values, other indices, each at an element of that value), "duplicates" (other updates
// won where several meet), or "wrong: ...".
std::string Compare(const Case& c, const Inputs& inputs, const Bytes& reference_values,
                    const Bytes& reference_indices, const Bytes& values, const Bytes& indices);

}  // namespace anydml::bench
