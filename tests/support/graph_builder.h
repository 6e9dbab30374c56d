// A DML_GRAPH_DESC from a few calls; everything lives as long as the builder.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <DirectML.h>

#include "support/dml_harness.h"

namespace anydml::test {

class GraphBuilder {
 public:
  UINT inputs = 0;
  UINT outputs = 0;

  // Each returns the index of the node.
  UINT Operator(IDMLOperator* op, const char* name = nullptr) {
    operators_.push_back({op, name});
    nodes.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &operators_.back()});
    return static_cast<UINT>(nodes.size() - 1);
  }
  UINT Operator(const ComPtr<IDMLOperator>& op, const char* name = nullptr) {
    kept_.push_back(op);
    return Operator(op.Get(), name);
  }
  UINT Constant(const void* data, SIZE_T bytes, const char* name = nullptr) {
    constants_.push_back({data, bytes, name});
    nodes.push_back({DML_GRAPH_NODE_TYPE_CONSTANT, &constants_.back()});
    return static_cast<UINT>(nodes.size() - 1);
  }

  // Also counts inputs and outputs.
  GraphBuilder& Input(UINT graph_input, UINT node, UINT input, const char* name = nullptr) {
    inputs = std::max(inputs, graph_input + 1);
    input_edges_.push_back({graph_input, node, input, name});
    in.push_back({DML_GRAPH_EDGE_TYPE_INPUT, &input_edges_.back()});
    return *this;
  }
  GraphBuilder& Edge(UINT from, UINT output, UINT to, UINT input, const char* name = nullptr) {
    intermediate_edges_.push_back({from, output, to, input, name});
    between.push_back({DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &intermediate_edges_.back()});
    return *this;
  }
  GraphBuilder& Output(UINT node, UINT output, UINT graph_output, const char* name = nullptr) {
    outputs = std::max(outputs, graph_output + 1);
    output_edges_.push_back({node, output, graph_output, name});
    out.push_back({DML_GRAPH_EDGE_TYPE_OUTPUT, &output_edges_.back()});
    return *this;
  }

  DML_GRAPH_DESC desc() const {
    return {inputs,
            outputs,
            static_cast<UINT>(nodes.size()),
            nodes.data(),
            static_cast<UINT>(in.size()),
            in.data(),
            static_cast<UINT>(out.size()),
            out.data(),
            static_cast<UINT>(between.size()),
            between.data()};
  }

  HRESULT TryCompile(IDMLDevice* device, ComPtr<IDMLCompiledOperator>* compiled,
                     DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE) const {
    ComPtr<IDMLDevice1> device1;
    Check(device->QueryInterface(IID_PPV_ARGS(&device1)), "QueryInterface(IDMLDevice1)");
    const DML_GRAPH_DESC graph = desc();
    return device1->CompileGraph(&graph, flags, IID_PPV_ARGS(compiled->ReleaseAndGetAddressOf()));
  }
  ComPtr<IDMLCompiledOperator> Compile(IDMLDevice* device,
                                       DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE) const {
    ComPtr<IDMLCompiledOperator> compiled;
    Check(TryCompile(device, &compiled, flags), "CompileGraph");
    return compiled;
  }

  // For tests that break them.
  std::vector<DML_GRAPH_NODE_DESC> nodes;
  std::vector<DML_GRAPH_EDGE_DESC> in, out, between;

 private:
  std::vector<ComPtr<IDMLOperator>> kept_;
  std::deque<DML_OPERATOR_GRAPH_NODE_DESC> operators_;
  std::deque<DML_CONSTANT_DATA_GRAPH_NODE_DESC> constants_;
  std::deque<DML_INPUT_GRAPH_EDGE_DESC> input_edges_;
  std::deque<DML_INTERMEDIATE_GRAPH_EDGE_DESC> intermediate_edges_;
  std::deque<DML_OUTPUT_GRAPH_EDGE_DESC> output_edges_;
};

}  // namespace anydml::test
