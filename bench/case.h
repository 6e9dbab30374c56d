// What is measured: one operator, its tensors and attributes, and where its data comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "anydml/describe/desc_fields.h"
#include "base/status.h"

namespace anydml::bench {

using Bytes = std::vector<std::byte>;
using Words = std::map<std::string, std::string>;  // a request's key=value pairs

// An operator of a graph. Its tensors are the case's inputs "i0", "i1"..., the output "o0", or have names of
// their own.
struct CaseNode {
  OperatorDesc desc;
  std::vector<std::string> inputs;  // in binding order; empty: absent
  std::vector<std::string> outputs;
};

struct Case {
  OperatorDesc desc;               // of a graph: its inputs and outputs
  std::vector<CaseNode> nodes;     // of a graph
  size_t first_weight = SIZE_MAX;  // the input from which on DirectML owns them
  bool compiles = false;           // compiling the graph is what is timed
  std::vector<std::string> data;   // of the inputs, in binding order; see MakeElements
  double ulps = 0;                 // by which a result may differ from the true one; 0: rounded once
  double absolute = 0;             // a difference that is none, either: sums of both signs may cancel
  bool in_place = false;
  uint32_t dispatches = 1;  // in one command list
  std::string floor;        // "" or, for latencies, what stands in for it
  uint64_t moved = 0;       // bytes that must be read and written; 0: those of all tensors
  // Cases with the same text have the same input files, and the same result.
  std::string inputs_text, result_text;

  bool Is(std::string_view operator_name) const { return operator_name == desc.schema->name; }
  const TensorDesc& tensor(std::string_view field) const { return *desc.tensor(field); }
  // TOP_K1: consecutive elements of a sequence are this many elements apart.
  uint64_t axis_stride() const;
  // SCATTER_ND: index tuples, the size of each, and the elements that one updates.
  uint64_t tuples() const;
  uint32_t tuple_size() const;
  uint64_t slice() const;
};

// "op" names the operator. Its fields' names have their values: attributes as `anydml op` takes them,
// tensors as TYPE:SIZES:STRIDES:DATA, where packed ones need no strides and outputs have no data. Those of an
// array are separated by semicolons. A graph's "op" is GRAPH, its tensors are InputTensors and OutputTensors,
// and "nodes" has OPERATOR/FIELD=VALUE/... of each, separated by bars; the value of a tensor is NAME@TENSOR.
// Throws std::runtime_error, as everything here does.
Case ParseCase(const Words& words);

// What the elements take, without gaps at the end.
uint64_t DataBytes(const TensorDesc& tensor);

// In binding order; FIELD.bin (of an array FIELD0.bin, FIELD1.bin...) in the current folder, which all
// workers share.
using Inputs = std::vector<Bytes>;
void WriteInputs(const Case& c);
Inputs ReadInputs(const Case& c);
Bytes ReadFile(const std::string& path);
void WriteFile(const std::string& path, const Bytes& bytes);
void Check(const Status& status);

}  // namespace anydml::bench
