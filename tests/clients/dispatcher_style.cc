// In the style of a command-line dispatcher: a generated header of IIDs comes first; wil together with
// winadapter, graphs, DMLCreateDevice1.
#include <wsl/winadapter.h>

#include <directx/d3d12.h>
#include <directx/dxcore.h>
#include <dxguids/dxguids.h>

#include <DirectML.h>
WINADAPTER_IID(IDMLDevice, 0x6dbd6437, 0x96fd, 0x423f, 0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f);

#include <wil/result.h>
#include <wrl/client.h>

#include <directx/d3dx12.h>

#define IGraphicsUnknown IUnknown
#define IID_GRAPHICS_PPV_ARGS IID_PPV_ARGS

using Microsoft::WRL::ComPtr;

HRESULT CompileGraph(ID3D12Device* d3d12, IDMLOperator* op) try {
  RETURN_HR_IF_NULL(E_POINTER, op);
  ComPtr<IDMLDevice1> device;
  RETURN_IF_FAILED(DMLCreateDevice1(d3d12, DML_CREATE_DEVICE_FLAG_DEBUG, DML_FEATURE_LEVEL_5_0,
                                    IID_GRAPHICS_PPV_ARGS(&device)));
  ComPtr<IDMLDebugDevice> debug;
  if (SUCCEEDED(device.As(&debug))) debug->SetMuteDebugOutput(FALSE);

  DML_OPERATOR_GRAPH_NODE_DESC node{op, "node"};
  DML_GRAPH_NODE_DESC nodes[] = {{DML_GRAPH_NODE_TYPE_OPERATOR, &node}};
  DML_INPUT_GRAPH_EDGE_DESC in{0, 0, 0, nullptr};
  DML_OUTPUT_GRAPH_EDGE_DESC out{0, 0, 0, nullptr};
  DML_GRAPH_EDGE_DESC inputs[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &in}};
  DML_GRAPH_EDGE_DESC outputs[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &out}};
  DML_GRAPH_DESC graph = {};
  graph.InputCount = 1;
  graph.OutputCount = 1;
  graph.NodeCount = _countof(nodes);
  graph.Nodes = nodes;
  graph.InputEdgeCount = _countof(inputs);
  graph.InputEdges = inputs;
  graph.OutputEdgeCount = _countof(outputs);
  graph.OutputEdges = outputs;
  ComPtr<IDMLCompiledOperator> compiled;
  THROW_IF_FAILED(device->CompileGraph(
      &graph, DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE | DML_EXECUTION_FLAG_DISABLE_META_COMMANDS,
      IID_PPV_ARGS(&compiled)));
  CD3DX12_RESOURCE_BARRIER barrier = CD3DX12_RESOURCE_BARRIER::UAV(nullptr);
  UNREFERENCED_PARAMETER(barrier);
  return S_OK;
}
CATCH_RETURN();
