// DXGI as far as programs without a window use it: factories and adapters.
//
// DirectX-Headers has only DXGI's formats. The interfaces keep every vtable
// slot of the real ones, also those that only make sense with a window; types
// that occur there behind pointers alone are not declared further.
#ifndef ANYDML_SUPPORT_DXGI_H_
#define ANYDML_SUPPORT_DXGI_H_

#include <anydml_support/direct3d.h>

// -----------------------------------------------------------------------------
// Types
// -----------------------------------------------------------------------------

typedef UINT DXGI_USAGE;

struct DXGI_SWAP_CHAIN_DESC;
struct DXGI_SWAP_CHAIN_DESC1;
struct DXGI_SWAP_CHAIN_FULLSCREEN_DESC;
struct DXGI_SHARED_RESOURCE;
struct DXGI_SURFACE_DESC;
interface IDXGIOutput;
interface IDXGISurface;
interface IDXGISwapChain;
interface IDXGISwapChain1;

#define DXGI_CREATE_FACTORY_DEBUG 0x1
#define DXGI_MWA_NO_WINDOW_CHANGES 0x1
#define DXGI_MWA_NO_ALT_ENTER 0x2
#define DXGI_MWA_NO_PRINT_SCREEN 0x4

enum DXGI_ADAPTER_FLAG {
  DXGI_ADAPTER_FLAG_NONE = 0,
  DXGI_ADAPTER_FLAG_REMOTE = 1,
  DXGI_ADAPTER_FLAG_SOFTWARE = 2,
  DXGI_ADAPTER_FLAG_FORCE_DWORD = 0xffffffff,
};

enum DXGI_ADAPTER_FLAG3 {
  DXGI_ADAPTER_FLAG3_NONE = 0,
  DXGI_ADAPTER_FLAG3_REMOTE = 0x1,
  DXGI_ADAPTER_FLAG3_SOFTWARE = 0x2,
  DXGI_ADAPTER_FLAG3_ACG_COMPATIBLE = 0x4,
  DXGI_ADAPTER_FLAG3_SUPPORT_MONITORED_FENCES = 0x8,
  DXGI_ADAPTER_FLAG3_SUPPORT_NON_MONITORED_FENCES = 0x10,
  DXGI_ADAPTER_FLAG3_KEYED_MUTEX_CONFORMANCE = 0x20,
  DXGI_ADAPTER_FLAG3_FORCE_DWORD = 0xffffffff,
};
DEFINE_ENUM_FLAG_OPERATORS(DXGI_ADAPTER_FLAG3)

enum DXGI_GRAPHICS_PREEMPTION_GRANULARITY {
  DXGI_GRAPHICS_PREEMPTION_DMA_BUFFER_BOUNDARY = 0,
  DXGI_GRAPHICS_PREEMPTION_PRIMITIVE_BOUNDARY = 1,
  DXGI_GRAPHICS_PREEMPTION_TRIANGLE_BOUNDARY = 2,
  DXGI_GRAPHICS_PREEMPTION_PIXEL_BOUNDARY = 3,
  DXGI_GRAPHICS_PREEMPTION_INSTRUCTION_BOUNDARY = 4,
};

enum DXGI_COMPUTE_PREEMPTION_GRANULARITY {
  DXGI_COMPUTE_PREEMPTION_DMA_BUFFER_BOUNDARY = 0,
  DXGI_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY = 1,
  DXGI_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY = 2,
  DXGI_COMPUTE_PREEMPTION_THREAD_BOUNDARY = 3,
  DXGI_COMPUTE_PREEMPTION_INSTRUCTION_BOUNDARY = 4,
};

enum DXGI_MEMORY_SEGMENT_GROUP {
  DXGI_MEMORY_SEGMENT_GROUP_LOCAL = 0,
  DXGI_MEMORY_SEGMENT_GROUP_NON_LOCAL = 1,
};

enum DXGI_GPU_PREFERENCE {
  DXGI_GPU_PREFERENCE_UNSPECIFIED = 0,
  DXGI_GPU_PREFERENCE_MINIMUM_POWER = 1,
  DXGI_GPU_PREFERENCE_HIGH_PERFORMANCE = 2,
};

enum DXGI_RESIDENCY {
  DXGI_RESIDENCY_FULLY_RESIDENT = 1,
  DXGI_RESIDENCY_RESIDENT_IN_SHARED_MEMORY = 2,
  DXGI_RESIDENCY_EVICTED_TO_DISK = 3,
};

enum DXGI_FEATURE {
  DXGI_FEATURE_PRESENT_ALLOW_TEARING = 0,
};

struct DXGI_ADAPTER_DESC {
  WCHAR Description[128];
  UINT VendorId;
  UINT DeviceId;
  UINT SubSysId;
  UINT Revision;
  SIZE_T DedicatedVideoMemory;
  SIZE_T DedicatedSystemMemory;
  SIZE_T SharedSystemMemory;
  LUID AdapterLuid;
};

struct DXGI_ADAPTER_DESC1 {
  WCHAR Description[128];
  UINT VendorId;
  UINT DeviceId;
  UINT SubSysId;
  UINT Revision;
  SIZE_T DedicatedVideoMemory;
  SIZE_T DedicatedSystemMemory;
  SIZE_T SharedSystemMemory;
  LUID AdapterLuid;
  UINT Flags;
};

struct DXGI_ADAPTER_DESC2 {
  WCHAR Description[128];
  UINT VendorId;
  UINT DeviceId;
  UINT SubSysId;
  UINT Revision;
  SIZE_T DedicatedVideoMemory;
  SIZE_T DedicatedSystemMemory;
  SIZE_T SharedSystemMemory;
  LUID AdapterLuid;
  UINT Flags;
  DXGI_GRAPHICS_PREEMPTION_GRANULARITY GraphicsPreemptionGranularity;
  DXGI_COMPUTE_PREEMPTION_GRANULARITY ComputePreemptionGranularity;
};

struct DXGI_ADAPTER_DESC3 {
  WCHAR Description[128];
  UINT VendorId;
  UINT DeviceId;
  UINT SubSysId;
  UINT Revision;
  SIZE_T DedicatedVideoMemory;
  SIZE_T DedicatedSystemMemory;
  SIZE_T SharedSystemMemory;
  LUID AdapterLuid;
  DXGI_ADAPTER_FLAG3 Flags;
  DXGI_GRAPHICS_PREEMPTION_GRANULARITY GraphicsPreemptionGranularity;
  DXGI_COMPUTE_PREEMPTION_GRANULARITY ComputePreemptionGranularity;
};

struct DXGI_QUERY_VIDEO_MEMORY_INFO {
  UINT64 Budget;
  UINT64 CurrentUsage;
  UINT64 AvailableForReservation;
  UINT64 CurrentReservation;
};

// -----------------------------------------------------------------------------
// Objects and adapters
// -----------------------------------------------------------------------------

interface DECLSPEC_UUID("aec22fb8-76f3-4639-9be0-28eb43a67a2e") DECLSPEC_NOVTABLE IDXGIObject : IUnknown {
  STDMETHOD(SetPrivateData)(REFGUID name, UINT dataSize, const void* data) PURE;
  STDMETHOD(SetPrivateDataInterface)(REFGUID name, _In_opt_ const IUnknown* unknown) PURE;
  STDMETHOD(GetPrivateData)
  (REFGUID name, _Inout_ UINT* dataSize, _Out_writes_bytes_(*dataSize) void* data) PURE;
  STDMETHOD(GetParent)(REFIID riid, _COM_Outptr_ void** parent) PURE;
};

interface DECLSPEC_UUID("2411e7e1-12ac-4ccf-bd14-9798e8534dc0") DECLSPEC_NOVTABLE IDXGIAdapter : IDXGIObject {
  STDMETHOD(EnumOutputs)(UINT index, _COM_Outptr_ IDXGIOutput** output) PURE;
  STDMETHOD(GetDesc)(_Out_ DXGI_ADAPTER_DESC* desc) PURE;
  STDMETHOD(CheckInterfaceSupport)(REFGUID interfaceName, _Out_ LARGE_INTEGER* umdVersion) PURE;
};

// Nothing implements it: programs ask adapters for its IID, and so for the driver's version.
interface DECLSPEC_UUID("54ec77fa-1377-44e6-8c32-88fd5f44c84c") DECLSPEC_NOVTABLE IDXGIDevice : IDXGIObject {
  STDMETHOD(GetAdapter)(_COM_Outptr_ IDXGIAdapter** adapter) PURE;
  STDMETHOD(CreateSurface)
  (_In_ const DXGI_SURFACE_DESC* desc, UINT surfaceCount, DXGI_USAGE usage,
   _In_opt_ const DXGI_SHARED_RESOURCE* sharedResource, _COM_Outptr_ IDXGISurface** surface) PURE;
  STDMETHOD(QueryResourceResidency)
  (IUnknown* const* resources, _Out_ DXGI_RESIDENCY* residencyStatus, UINT resourceCount) PURE;
  STDMETHOD(SetGPUThreadPriority)(INT priority) PURE;
  STDMETHOD(GetGPUThreadPriority)(_Out_ INT* priority) PURE;
};

interface DECLSPEC_UUID("29038f61-3839-4626-91fd-086879011a05") DECLSPEC_NOVTABLE IDXGIAdapter1
    : IDXGIAdapter {
  STDMETHOD(GetDesc1)(_Out_ DXGI_ADAPTER_DESC1* desc) PURE;
};

interface DECLSPEC_UUID("0aa1ae0a-fa0e-4b84-8644-e05ff8e5acb5") DECLSPEC_NOVTABLE IDXGIAdapter2
    : IDXGIAdapter1 {
  STDMETHOD(GetDesc2)(_Out_ DXGI_ADAPTER_DESC2* desc) PURE;
};

interface DECLSPEC_UUID("645967a4-1392-4310-a798-8053ce3e93fd") DECLSPEC_NOVTABLE IDXGIAdapter3
    : IDXGIAdapter2 {
  STDMETHOD(RegisterHardwareContentProtectionTeardownStatusEvent)(HANDLE event, _Out_ DWORD* cookie) PURE;
  STDMETHOD_(void, UnregisterHardwareContentProtectionTeardownStatus)(DWORD cookie) PURE;
  STDMETHOD(QueryVideoMemoryInfo)
  (UINT nodeIndex, DXGI_MEMORY_SEGMENT_GROUP memorySegmentGroup,
   _Out_ DXGI_QUERY_VIDEO_MEMORY_INFO* videoMemoryInfo) PURE;
  STDMETHOD(SetVideoMemoryReservation)
  (UINT nodeIndex, DXGI_MEMORY_SEGMENT_GROUP memorySegmentGroup, UINT64 reservation) PURE;
  STDMETHOD(RegisterVideoMemoryBudgetChangeNotificationEvent)(HANDLE event, _Out_ DWORD* cookie) PURE;
  STDMETHOD_(void, UnregisterVideoMemoryBudgetChangeNotification)(DWORD cookie) PURE;
};

interface DECLSPEC_UUID("3c8d99d1-4fbf-4181-a82c-af66bf7bd24e") DECLSPEC_NOVTABLE IDXGIAdapter4
    : IDXGIAdapter3 {
  STDMETHOD(GetDesc3)(_Out_ DXGI_ADAPTER_DESC3* desc) PURE;
};

// -----------------------------------------------------------------------------
// Factories
// -----------------------------------------------------------------------------

interface DECLSPEC_UUID("7b7166ec-21c7-44ae-b21a-c9ae321ae369") DECLSPEC_NOVTABLE IDXGIFactory : IDXGIObject {
  STDMETHOD(EnumAdapters)(UINT index, _COM_Outptr_ IDXGIAdapter** adapter) PURE;
  STDMETHOD(MakeWindowAssociation)(HWND window, UINT flags) PURE;
  STDMETHOD(GetWindowAssociation)(_Out_ HWND* window) PURE;
  STDMETHOD(CreateSwapChain)
  (IUnknown* device, DXGI_SWAP_CHAIN_DESC* desc, _COM_Outptr_ IDXGISwapChain** swapChain) PURE;
  STDMETHOD(CreateSoftwareAdapter)(HMODULE module, _COM_Outptr_ IDXGIAdapter** adapter) PURE;
};

interface DECLSPEC_UUID("770aae78-f26f-4dba-a829-253c83d1b387") DECLSPEC_NOVTABLE IDXGIFactory1
    : IDXGIFactory {
  STDMETHOD(EnumAdapters1)(UINT index, _COM_Outptr_ IDXGIAdapter1** adapter) PURE;
  STDMETHOD_(BOOL, IsCurrent)() PURE;
};

interface DECLSPEC_UUID("50c83a1c-e072-4c48-87b0-3630fa36a6d0") DECLSPEC_NOVTABLE IDXGIFactory2
    : IDXGIFactory1 {
  STDMETHOD_(BOOL, IsWindowedStereoEnabled)() PURE;
  STDMETHOD(CreateSwapChainForHwnd)
  (IUnknown* device, HWND window, const DXGI_SWAP_CHAIN_DESC1* desc,
   _In_opt_ const DXGI_SWAP_CHAIN_FULLSCREEN_DESC* fullscreenDesc, _In_opt_ IDXGIOutput* restrictToOutput,
   _COM_Outptr_ IDXGISwapChain1** swapChain) PURE;
  STDMETHOD(CreateSwapChainForCoreWindow)
  (IUnknown* device, IUnknown* window, const DXGI_SWAP_CHAIN_DESC1* desc,
   _In_opt_ IDXGIOutput* restrictToOutput, _COM_Outptr_ IDXGISwapChain1** swapChain) PURE;
  STDMETHOD(GetSharedResourceAdapterLuid)(HANDLE resource, _Out_ LUID* luid) PURE;
  STDMETHOD(RegisterStereoStatusWindow)(HWND window, UINT message, _Out_ DWORD* cookie) PURE;
  STDMETHOD(RegisterStereoStatusEvent)(HANDLE event, _Out_ DWORD* cookie) PURE;
  STDMETHOD_(void, UnregisterStereoStatus)(DWORD cookie) PURE;
  STDMETHOD(RegisterOcclusionStatusWindow)(HWND window, UINT message, _Out_ DWORD* cookie) PURE;
  STDMETHOD(RegisterOcclusionStatusEvent)(HANDLE event, _Out_ DWORD* cookie) PURE;
  STDMETHOD_(void, UnregisterOcclusionStatus)(DWORD cookie) PURE;
  STDMETHOD(CreateSwapChainForComposition)
  (IUnknown* device, const DXGI_SWAP_CHAIN_DESC1* desc, _In_opt_ IDXGIOutput* restrictToOutput,
   _COM_Outptr_ IDXGISwapChain1** swapChain) PURE;
};

interface DECLSPEC_UUID("25483823-cd46-4c7d-86ca-47aa95b837bd") DECLSPEC_NOVTABLE IDXGIFactory3
    : IDXGIFactory2 {
  STDMETHOD_(UINT, GetCreationFlags)() PURE;
};

interface DECLSPEC_UUID("1bc6ea02-ef36-464f-bf0c-21ca39e5168a") DECLSPEC_NOVTABLE IDXGIFactory4
    : IDXGIFactory3 {
  STDMETHOD(EnumAdapterByLuid)(LUID adapterLuid, REFIID riid, _COM_Outptr_ void** adapter) PURE;
  STDMETHOD(EnumWarpAdapter)(REFIID riid, _COM_Outptr_ void** adapter) PURE;
};

interface DECLSPEC_UUID("7632e1f5-ee65-4dca-87fd-84cd75f8838d") DECLSPEC_NOVTABLE IDXGIFactory5
    : IDXGIFactory4 {
  STDMETHOD(CheckFeatureSupport)
  (DXGI_FEATURE feature, _Inout_updates_bytes_(featureSupportDataSize) void* featureSupportData,
   UINT featureSupportDataSize) PURE;
};

interface DECLSPEC_UUID("c1b6694f-ff09-44a9-b03c-77900a0a1d17") DECLSPEC_NOVTABLE IDXGIFactory6
    : IDXGIFactory5 {
  STDMETHOD(EnumAdapterByGpuPreference)
  (UINT index, DXGI_GPU_PREFERENCE gpuPreference, REFIID riid, _COM_Outptr_ void** adapter) PURE;
};

interface DECLSPEC_UUID("a4966eed-76db-44da-84c1-ee9a7afb20a8") DECLSPEC_NOVTABLE IDXGIFactory7
    : IDXGIFactory6 {
  STDMETHOD(RegisterAdaptersChangedEvent)(HANDLE event, _Out_ DWORD* cookie) PURE;
  STDMETHOD(UnregisterAdaptersChangedEvent)(DWORD cookie) PURE;
};

// -----------------------------------------------------------------------------
// Entry points of libdxgi.so
// -----------------------------------------------------------------------------

STDAPI CreateDXGIFactory(REFIID riid, _COM_Outptr_ void** factory);
STDAPI CreateDXGIFactory1(REFIID riid, _COM_Outptr_ void** factory);
STDAPI CreateDXGIFactory2(UINT flags, REFIID riid, _COM_Outptr_ void** factory);

// -----------------------------------------------------------------------------
// IIDs
// -----------------------------------------------------------------------------

#define ANYDML_DXGI_IID(name, ...)     \
  ANYDML_DEFINE_IID(name, __VA_ARGS__) \
  DEFINE_GUID(IID_##name, __VA_ARGS__);

ANYDML_DXGI_IID(IDXGIObject, 0xaec22fb8, 0x76f3, 0x4639, 0x9b, 0xe0, 0x28, 0xeb, 0x43, 0xa6, 0x7a, 0x2e)
ANYDML_DXGI_IID(IDXGIAdapter, 0x2411e7e1, 0x12ac, 0x4ccf, 0xbd, 0x14, 0x97, 0x98, 0xe8, 0x53, 0x4d, 0xc0)
ANYDML_DXGI_IID(IDXGIAdapter1, 0x29038f61, 0x3839, 0x4626, 0x91, 0xfd, 0x08, 0x68, 0x79, 0x01, 0x1a, 0x05)
ANYDML_DXGI_IID(IDXGIAdapter2, 0x0aa1ae0a, 0xfa0e, 0x4b84, 0x86, 0x44, 0xe0, 0x5f, 0xf8, 0xe5, 0xac, 0xb5)
ANYDML_DXGI_IID(IDXGIAdapter3, 0x645967a4, 0x1392, 0x4310, 0xa7, 0x98, 0x80, 0x53, 0xce, 0x3e, 0x93, 0xfd)
ANYDML_DXGI_IID(IDXGIAdapter4, 0x3c8d99d1, 0x4fbf, 0x4181, 0xa8, 0x2c, 0xaf, 0x66, 0xbf, 0x7b, 0xd2, 0x4e)
ANYDML_DXGI_IID(IDXGIDevice, 0x54ec77fa, 0x1377, 0x44e6, 0x8c, 0x32, 0x88, 0xfd, 0x5f, 0x44, 0xc8, 0x4c)
ANYDML_DXGI_IID(IDXGIFactory, 0x7b7166ec, 0x21c7, 0x44ae, 0xb2, 0x1a, 0xc9, 0xae, 0x32, 0x1a, 0xe3, 0x69)
ANYDML_DXGI_IID(IDXGIFactory1, 0x770aae78, 0xf26f, 0x4dba, 0xa8, 0x29, 0x25, 0x3c, 0x83, 0xd1, 0xb3, 0x87)
ANYDML_DXGI_IID(IDXGIFactory2, 0x50c83a1c, 0xe072, 0x4c48, 0x87, 0xb0, 0x36, 0x30, 0xfa, 0x36, 0xa6, 0xd0)
ANYDML_DXGI_IID(IDXGIFactory3, 0x25483823, 0xcd46, 0x4c7d, 0x86, 0xca, 0x47, 0xaa, 0x95, 0xb8, 0x37, 0xbd)
ANYDML_DXGI_IID(IDXGIFactory4, 0x1bc6ea02, 0xef36, 0x464f, 0xbf, 0x0c, 0x21, 0xca, 0x39, 0xe5, 0x16, 0x8a)
ANYDML_DXGI_IID(IDXGIFactory5, 0x7632e1f5, 0xee65, 0x4dca, 0x87, 0xfd, 0x84, 0xcd, 0x75, 0xf8, 0x83, 0x8d)
ANYDML_DXGI_IID(IDXGIFactory6, 0xc1b6694f, 0xff09, 0x44a9, 0xb0, 0x3c, 0x77, 0x90, 0x0a, 0x0a, 0x1d, 0x17)
ANYDML_DXGI_IID(IDXGIFactory7, 0xa4966eed, 0x76db, 0x44da, 0x84, 0xc1, 0xee, 0x9a, 0x7a, 0xfb, 0x20, 0xa8)

#undef ANYDML_DXGI_IID

#define ANYDML_HAS_IID_IDXGIObject ~,
#define ANYDML_HAS_IID_IDXGIAdapter ~,
#define ANYDML_HAS_IID_IDXGIAdapter1 ~,
#define ANYDML_HAS_IID_IDXGIAdapter2 ~,
#define ANYDML_HAS_IID_IDXGIAdapter3 ~,
#define ANYDML_HAS_IID_IDXGIAdapter4 ~,
#define ANYDML_HAS_IID_IDXGIDevice ~,
#define ANYDML_HAS_IID_IDXGIFactory ~,
#define ANYDML_HAS_IID_IDXGIFactory1 ~,
#define ANYDML_HAS_IID_IDXGIFactory2 ~,
#define ANYDML_HAS_IID_IDXGIFactory3 ~,
#define ANYDML_HAS_IID_IDXGIFactory4 ~,
#define ANYDML_HAS_IID_IDXGIFactory5 ~,
#define ANYDML_HAS_IID_IDXGIFactory6 ~,
#define ANYDML_HAS_IID_IDXGIFactory7 ~,

#endif  // ANYDML_SUPPORT_DXGI_H_
