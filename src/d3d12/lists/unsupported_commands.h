// The graphics methods of a command list, and those that need shaders. They put the list into its error
// state: Close then fails and names the first of them.
#pragma once

#include "d3d12/device/device_child.h"

namespace anydml::d3d12 {

class UnsupportedCommands
    : public DeviceChild<ID3D12GraphicsCommandList4, ID3D12CommandList, ID3D12GraphicsCommandList,
                         ID3D12GraphicsCommandList1, ID3D12GraphicsCommandList2, ID3D12GraphicsCommandList3> {
 public:
  // ID3D12GraphicsCommandList
  void STDMETHODCALLTYPE DrawInstanced(UINT, UINT, UINT, UINT) override { Unsupported("DrawInstanced"); }
  void STDMETHODCALLTYPE DrawIndexedInstanced(UINT, UINT, UINT, INT, UINT) override {
    Unsupported("DrawIndexedInstanced");
  }
  void STDMETHODCALLTYPE Dispatch(UINT, UINT, UINT) override { Unsupported("Dispatch"); }
  void STDMETHODCALLTYPE CopyTextureRegion(const D3D12_TEXTURE_COPY_LOCATION*, UINT, UINT, UINT,
                                           const D3D12_TEXTURE_COPY_LOCATION*, const D3D12_BOX*) override {
    Unsupported("CopyTextureRegion");
  }
  void STDMETHODCALLTYPE CopyTiles(ID3D12Resource*, const D3D12_TILED_RESOURCE_COORDINATE*,
                                   const D3D12_TILE_REGION_SIZE*, ID3D12Resource*, UINT64,
                                   D3D12_TILE_COPY_FLAGS) override {
    Unsupported("CopyTiles");
  }
  void STDMETHODCALLTYPE ResolveSubresource(ID3D12Resource*, UINT, ID3D12Resource*, UINT,
                                            DXGI_FORMAT) override {
    Unsupported("ResolveSubresource");
  }

  void STDMETHODCALLTYPE IASetPrimitiveTopology(D3D12_PRIMITIVE_TOPOLOGY) override {
    Unsupported("IASetPrimitiveTopology");
  }
  void STDMETHODCALLTYPE RSSetViewports(UINT, const D3D12_VIEWPORT*) override {
    Unsupported("RSSetViewports");
  }
  void STDMETHODCALLTYPE RSSetScissorRects(UINT, const D3D12_RECT*) override {
    Unsupported("RSSetScissorRects");
  }
  void STDMETHODCALLTYPE OMSetBlendFactor(const FLOAT*) override { Unsupported("OMSetBlendFactor"); }
  void STDMETHODCALLTYPE OMSetStencilRef(UINT) override { Unsupported("OMSetStencilRef"); }
  void STDMETHODCALLTYPE ExecuteBundle(ID3D12GraphicsCommandList*) override { Unsupported("ExecuteBundle"); }

  void STDMETHODCALLTYPE SetGraphicsRootSignature(ID3D12RootSignature*) override {
    Unsupported("SetGraphicsRootSignature");
  }
  void STDMETHODCALLTYPE SetComputeRootDescriptorTable(UINT, D3D12_GPU_DESCRIPTOR_HANDLE) override {
    Unsupported("SetComputeRootDescriptorTable");
  }
  void STDMETHODCALLTYPE SetGraphicsRootDescriptorTable(UINT, D3D12_GPU_DESCRIPTOR_HANDLE) override {
    Unsupported("SetGraphicsRootDescriptorTable");
  }
  void STDMETHODCALLTYPE SetComputeRoot32BitConstant(UINT, UINT, UINT) override {
    Unsupported("SetComputeRoot32BitConstant");
  }
  void STDMETHODCALLTYPE SetGraphicsRoot32BitConstant(UINT, UINT, UINT) override {
    Unsupported("SetGraphicsRoot32BitConstant");
  }
  void STDMETHODCALLTYPE SetComputeRoot32BitConstants(UINT, UINT, const void*, UINT) override {
    Unsupported("SetComputeRoot32BitConstants");
  }
  void STDMETHODCALLTYPE SetGraphicsRoot32BitConstants(UINT, UINT, const void*, UINT) override {
    Unsupported("SetGraphicsRoot32BitConstants");
  }
  void STDMETHODCALLTYPE SetComputeRootConstantBufferView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetComputeRootConstantBufferView");
  }
  void STDMETHODCALLTYPE SetGraphicsRootConstantBufferView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetGraphicsRootConstantBufferView");
  }
  void STDMETHODCALLTYPE SetComputeRootShaderResourceView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetComputeRootShaderResourceView");
  }
  void STDMETHODCALLTYPE SetGraphicsRootShaderResourceView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetGraphicsRootShaderResourceView");
  }
  void STDMETHODCALLTYPE SetComputeRootUnorderedAccessView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetComputeRootUnorderedAccessView");
  }
  void STDMETHODCALLTYPE SetGraphicsRootUnorderedAccessView(UINT, D3D12_GPU_VIRTUAL_ADDRESS) override {
    Unsupported("SetGraphicsRootUnorderedAccessView");
  }

  void STDMETHODCALLTYPE IASetIndexBuffer(const D3D12_INDEX_BUFFER_VIEW*) override {
    Unsupported("IASetIndexBuffer");
  }
  void STDMETHODCALLTYPE IASetVertexBuffers(UINT, UINT, const D3D12_VERTEX_BUFFER_VIEW*) override {
    Unsupported("IASetVertexBuffers");
  }
  void STDMETHODCALLTYPE SOSetTargets(UINT, UINT, const D3D12_STREAM_OUTPUT_BUFFER_VIEW*) override {
    Unsupported("SOSetTargets");
  }
  void STDMETHODCALLTYPE OMSetRenderTargets(UINT, const D3D12_CPU_DESCRIPTOR_HANDLE*, BOOL,
                                            const D3D12_CPU_DESCRIPTOR_HANDLE*) override {
    Unsupported("OMSetRenderTargets");
  }
  void STDMETHODCALLTYPE ClearDepthStencilView(D3D12_CPU_DESCRIPTOR_HANDLE, D3D12_CLEAR_FLAGS, FLOAT, UINT8,
                                               UINT, const D3D12_RECT*) override {
    Unsupported("ClearDepthStencilView");
  }
  void STDMETHODCALLTYPE ClearRenderTargetView(D3D12_CPU_DESCRIPTOR_HANDLE, const FLOAT*, UINT,
                                               const D3D12_RECT*) override {
    Unsupported("ClearRenderTargetView");
  }
  void STDMETHODCALLTYPE ClearUnorderedAccessViewFloat(D3D12_GPU_DESCRIPTOR_HANDLE,
                                                       D3D12_CPU_DESCRIPTOR_HANDLE, ID3D12Resource*,
                                                       const FLOAT*, UINT, const D3D12_RECT*) override {
    Unsupported("ClearUnorderedAccessViewFloat");
  }
  void STDMETHODCALLTYPE BeginQuery(ID3D12QueryHeap*, D3D12_QUERY_TYPE, UINT) override {
    Unsupported("BeginQuery");
  }
  void STDMETHODCALLTYPE ExecuteIndirect(ID3D12CommandSignature*, UINT, ID3D12Resource*, UINT64,
                                         ID3D12Resource*, UINT64) override {
    Unsupported("ExecuteIndirect");
  }
  // ID3D12GraphicsCommandList1
  void STDMETHODCALLTYPE OMSetDepthBounds(FLOAT, FLOAT) override { Unsupported("OMSetDepthBounds"); }
  void STDMETHODCALLTYPE SetSamplePositions(UINT, UINT, D3D12_SAMPLE_POSITION*) override {
    Unsupported("SetSamplePositions");
  }
  void STDMETHODCALLTYPE ResolveSubresourceRegion(ID3D12Resource*, UINT, UINT, UINT, ID3D12Resource*, UINT,
                                                  D3D12_RECT*, DXGI_FORMAT, D3D12_RESOLVE_MODE) override {
    Unsupported("ResolveSubresourceRegion");
  }
  void STDMETHODCALLTYPE SetViewInstanceMask(UINT) override { Unsupported("SetViewInstanceMask"); }
  // ID3D12GraphicsCommandList4
  void STDMETHODCALLTYPE BeginRenderPass(UINT, const D3D12_RENDER_PASS_RENDER_TARGET_DESC*,
                                         const D3D12_RENDER_PASS_DEPTH_STENCIL_DESC*,
                                         D3D12_RENDER_PASS_FLAGS) override {
    Unsupported("BeginRenderPass");
  }
  void STDMETHODCALLTYPE EndRenderPass() override { Unsupported("EndRenderPass"); }
  void STDMETHODCALLTYPE InitializeMetaCommand(ID3D12MetaCommand*, const void*, SIZE_T) override {
    Unsupported("InitializeMetaCommand");
  }
  void STDMETHODCALLTYPE ExecuteMetaCommand(ID3D12MetaCommand*, const void*, SIZE_T) override {
    Unsupported("ExecuteMetaCommand");
  }

  void STDMETHODCALLTYPE BuildRaytracingAccelerationStructure(
      const D3D12_BUILD_RAYTRACING_ACCELERATION_STRUCTURE_DESC*, UINT,
      const D3D12_RAYTRACING_ACCELERATION_STRUCTURE_POSTBUILD_INFO_DESC*) override {
    Unsupported("BuildRaytracingAccelerationStructure");
  }

  void STDMETHODCALLTYPE EmitRaytracingAccelerationStructurePostbuildInfo(
      const D3D12_RAYTRACING_ACCELERATION_STRUCTURE_POSTBUILD_INFO_DESC*, UINT,
      const D3D12_GPU_VIRTUAL_ADDRESS*) override {
    Unsupported("EmitRaytracingAccelerationStructurePostbuildInfo");
  }
  void STDMETHODCALLTYPE
  CopyRaytracingAccelerationStructure(D3D12_GPU_VIRTUAL_ADDRESS, D3D12_GPU_VIRTUAL_ADDRESS,
                                      D3D12_RAYTRACING_ACCELERATION_STRUCTURE_COPY_MODE) override {
    Unsupported("CopyRaytracingAccelerationStructure");
  }
  void STDMETHODCALLTYPE SetPipelineState1(ID3D12StateObject*) override { Unsupported("SetPipelineState1"); }

  void STDMETHODCALLTYPE DispatchRays(const D3D12_DISPATCH_RAYS_DESC*) override {
    Unsupported("DispatchRays");
  }

 protected:
  using DeviceChild::DeviceChild;
  virtual void Unsupported(const char* method) = 0;
};

}  // namespace anydml::d3d12
