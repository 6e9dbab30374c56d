// A case of the benchmark: an operator, its tensors and attributes, and the source of its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/describe/desc_fields.h"

namespace anydml::bench {

using Bytes = std::vector<std::byte>;
using Words = std::map<std::string, std::string>;  // a request's key=value pairs

// An operator of a graph. Its tensors are the case's inputs "i0", "i1"..., the output "o0", or intermediate
// ones with names of their own.
struct CaseNode {
  OperatorDesc desc;
  std::vector<std::string> inputs;  // in binding order; empty: absent
  std::vector<std::string> outputs;
};

struct Case {
  OperatorDesc desc;               // of a graph: its inputs and outputs
  std::vector<CaseNode> nodes;     // of a graph
  size_t first_weight = SIZE_MAX;  // DirectML owns the inputs from this one on
  bool compiles = false;           // the time to compile the graph is measured
  std::vector<std::string> data;   // of the inputs, in binding order; see MakeElements
  double ulps = 0;                 // allowed error; 0: correctly rounded
  double absolute = 0;             // also allowed: an absolute error, since terms of both signs may cancel
  bool in_place = false;
  uint32_t dispatches = 1;  // in one command list
  std::string floor;        // "", or for latencies the name of the floor to use
  uint64_t moved = 0;       // bytes that must be read and written; 0: those of all tensors
  // Cases with the same text share input files, and results.
  std::string inputs_text, result_text;

  bool Is(std::string_view operator_name) const { return operator_name == desc.schema->name; }
  const TensorDesc& tensor(std::string_view field) const { return *desc.tensor(field); }
  // TOP_K1: the stride of a sequence.
  uint64_t axis_stride() const;
  // SCATTER_ND: the number of index tuples, the size of each, and the elements that one updates.
  uint64_t tuples() const;
  uint32_t tuple_size() const;
  uint64_t slice() const;
};

// "op" is the operator's name. Fields have values: attributes as for `anydml op`, tensors as
// TYPE:SIZES:STRIDES:DATA, where packed ones need no strides and outputs no data; those of an array are
// separated by semicolons. A graph's "op" is GRAPH, its tensors are InputTensors and OutputTensors, and
// "nodes" has OPERATOR/FIELD=VALUE/... for each node, separated by bars; a tensor's value is NAME@TENSOR.
// Throws std::runtime_error, as everything here does.
Case ParseCase(const Words& words);

// The size of the elements, without gaps at the end.
uint64_t DataBytes(const TensorDesc& tensor);

// In binding order; FIELD.bin (for an array FIELD0.bin, FIELD1.bin...) in the current folder, which all
// workers share.
using Inputs = std::vector<Bytes>;
void WriteInputs(const Case& c);
Inputs ReadInputs(const Case& c);
Bytes ReadFile(const std::string& path);
void WriteFile(const std::string& path, const Bytes& bytes);
void Check(const Status& status);

}  // namespace anydml::bench
