// Names of newer DirectX-Headers that programs use and older ones lack.
//
// Most of them are enum members there, which no #ifdef can see, so each block
// is chosen by the D3D12_SDK_VERSION that introduced it.
#ifndef ANYDML_SUPPORT_NEWER_NAMES_H_
#define ANYDML_SUPPORT_NEWER_NAMES_H_

#ifndef D3D12_SDK_VERSION
#error "Include <d3d12.h>, which includes this header at the right place."
#endif

#if D3D12_SDK_VERSION < 608
constexpr D3D12_FEATURE D3D12_FEATURE_D3D12_OPTIONS16 = static_cast<D3D12_FEATURE>(45);

struct D3D12_FEATURE_DATA_D3D12_OPTIONS16 {
  _Out_ BOOL DynamicDepthBiasSupported;
  _Out_ BOOL GPUUploadHeapSupported;
};
#endif

#if D3D12_SDK_VERSION < 610
constexpr D3D12_FEATURE D3D12_FEATURE_D3D12_OPTIONS17 = static_cast<D3D12_FEATURE>(46);
constexpr D3D12_FEATURE D3D12_FEATURE_D3D12_OPTIONS18 = static_cast<D3D12_FEATURE>(47);
constexpr D3D12_FEATURE D3D12_FEATURE_D3D12_OPTIONS19 = static_cast<D3D12_FEATURE>(48);
constexpr D3D12_HEAP_TYPE D3D12_HEAP_TYPE_GPU_UPLOAD = static_cast<D3D12_HEAP_TYPE>(5);

struct D3D12_FEATURE_DATA_D3D12_OPTIONS17 {
  _Out_ BOOL NonNormalizedCoordinateSamplersSupported;
  _Out_ BOOL ManualWriteTrackingResourceSupported;
};

struct D3D12_FEATURE_DATA_D3D12_OPTIONS18 {
  _Out_ BOOL RenderPassesValid;
};

struct D3D12_FEATURE_DATA_D3D12_OPTIONS19 {
  BOOL MismatchingOutputDimensionsSupported;
  UINT SupportedSampleCountsWithNoOutputs;
  BOOL PointSamplingAddressesNeverRoundUp;
  BOOL RasterizerDesc2Supported;
  BOOL NarrowQuadrilateralLinesSupported;
  BOOL AnisoFilterWithPointMipSupported;
  UINT MaxSamplerDescriptorHeapSize;
  UINT MaxSamplerDescriptorHeapSizeWithStaticSamplers;
  UINT MaxViewDescriptorHeapSize;
  _Out_ BOOL ComputeOnlyCustomHeapSupported;
};
#endif

#if D3D12_SDK_VERSION < 611
constexpr D3D_FEATURE_LEVEL D3D_FEATURE_LEVEL_1_0_GENERIC = static_cast<D3D_FEATURE_LEVEL>(0x100);
#endif

#if D3D12_SDK_VERSION < 613
DEFINE_GUID(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_ML, 0xb71b0d41, 0x1088, 0x422f, 0xa2, 0x7c, 0x02, 0x50,
            0xb7, 0xd3, 0xa9, 0x88);
DEFINE_GUID(DXCORE_ADAPTER_ATTRIBUTE_D3D12_GENERIC_MEDIA, 0x8eb2c848, 0x82f6, 0x4b49, 0xaa, 0x87, 0xae, 0xcf,
            0xcf, 0x01, 0x74, 0xc6);
DEFINE_GUID(DXCORE_HARDWARE_TYPE_ATTRIBUTE_GPU, 0xb69eb219, 0x3ded, 0x4464, 0x97, 0x9f, 0xa0, 0x0b, 0xd4,
            0x68, 0x70, 0x06);
DEFINE_GUID(DXCORE_HARDWARE_TYPE_ATTRIBUTE_COMPUTE_ACCELERATOR, 0xe0b195da, 0x58ef, 0x4a22, 0x90, 0xf1, 0x1f,
            0x28, 0x16, 0x9c, 0xab, 0x8d);
DEFINE_GUID(DXCORE_HARDWARE_TYPE_ATTRIBUTE_NPU, 0xd46140c4, 0xadd7, 0x451b, 0x9e, 0x56, 0x06, 0xfe, 0x8c,
            0x3b, 0x58, 0xed);
DEFINE_GUID(DXCORE_HARDWARE_TYPE_ATTRIBUTE_MEDIA_ACCELERATOR, 0x66bdb96a, 0x050b, 0x44c7, 0xa4, 0xfd, 0xd1,
            0x44, 0xce, 0x0a, 0xb4, 0x43);

enum class DXCoreWorkload : uint32_t {
  Graphics = 0,
  Compute = 1,
  Media = 2,
  MachineLearning = 3,
};

enum class DXCoreRuntimeFilterFlags : uint32_t {
  None = 0x0,
  D3D11 = 0x1,
  D3D12 = 0x2,
};
DEFINE_ENUM_FLAG_OPERATORS(DXCoreRuntimeFilterFlags)

enum class DXCoreHardwareTypeFilterFlags : uint32_t {
  None = 0x0,
  GPU = 0x1,
  ComputeAccelerator = 0x2,
  NPU = 0x4,
  MediaAccelerator = 0x8,
};
DEFINE_ENUM_FLAG_OPERATORS(DXCoreHardwareTypeFilterFlags)

interface IDXCoreAdapter1 : public IDXCoreAdapter {
  STDMETHOD(GetPropertyWithInput)
  (DXCoreAdapterProperty property, size_t inputPropertyDetailsSize,
   _In_reads_bytes_opt_(inputPropertyDetailsSize) const void* inputPropertyDetails, size_t outputBufferSize,
   _Out_writes_bytes_(outputBufferSize) void* outputBuffer) PURE;

  template <class Input, class Output>
  HRESULT GetPropertyWithInput(DXCoreAdapterProperty property, const Input* input, Output* output) {
    return GetPropertyWithInput(property, sizeof(Input), static_cast<const void*>(input), sizeof(Output),
                                static_cast<void*>(output));
  }
};

interface IDXCoreAdapterFactory1 : public IDXCoreAdapterFactory {
  STDMETHOD(CreateAdapterListByWorkload)
  (DXCoreWorkload workload, DXCoreRuntimeFilterFlags runtimeFilter,
   DXCoreHardwareTypeFilterFlags hardwareTypeFilter, REFIID riid, _COM_Outptr_ void** ppvAdapterList) PURE;

  template <class List>
  HRESULT CreateAdapterListByWorkload(DXCoreWorkload workload, DXCoreRuntimeFilterFlags runtime_filter,
                                      DXCoreHardwareTypeFilterFlags hardware_type_filter, List** list) {
    return CreateAdapterListByWorkload(workload, runtime_filter, hardware_type_filter, IID_PPV_ARGS(list));
  }
};
#endif  // D3D12_SDK_VERSION < 613

#endif  // ANYDML_SUPPORT_NEWER_NAMES_H_
