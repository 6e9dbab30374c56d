// CheckFeatureSupport: the features that the device reports. Whatever is not set is absent, as is right for a
// device without graphics and shaders.
#include <algorithm>

#include "com/guard.h"
#include "d3d12/descriptors/buffer_view.h"
#include "d3d12/device/device.h"
#include "d3d12/device/feature_levels.h"

namespace anydml::d3d12 {
namespace {

// Hosts of both architectures have at least 47 bits; no resource needs more.
constexpr UINT kAddressBits = 47;

template <typename T>
Status Expect(UINT size) {
  if (size == sizeof(T)) return {};
  return InvalidArgument("FeatureSupportDataSize is ", size, "; it must be ", sizeof(T));
}

// Passes the caller's struct to `fill` after checking its size.
template <typename T, typename Fill>
Status Answer(void* data, UINT size, Fill&& fill) {
  ANYDML_RETURN_IF_ERROR(Expect<T>(size));
  return fill(static_cast<T*>(data));
}

// For structs with outputs only.
template <typename T>
Status Answer(void* data, UINT size, const T& value) {
  ANYDML_RETURN_IF_ERROR(Expect<T>(size));
  *static_cast<T*>(data) = value;
  return {};
}

template <typename T>
Status AnswerNothing(void* data, UINT size) {
  return Answer(data, size, T{});
}

Status Architecture(const AdapterInfo& adapter, UINT node, BOOL* tiles, BOOL* uma, BOOL* coherent) {
  if (node != 0) return InvalidArgument("NodeIndex is ", node, "; the device has one node");
  *tiles = FALSE;
  *uma = adapter.unified_memory;
  *coherent = adapter.unified_memory;
  return {};
}

Status FeatureLevels(D3D12_FEATURE_DATA_FEATURE_LEVELS* data) {
  if (data->NumFeatureLevels == 0 || data->pFeatureLevelsRequested == nullptr) {
    return InvalidArgument("pFeatureLevelsRequested must name at least one level");
  }
  D3D_FEATURE_LEVEL best{};
  for (UINT i = 0; i < data->NumFeatureLevels; ++i) {
    const D3D_FEATURE_LEVEL level = data->pFeatureLevelsRequested[i];
    if (IsFeatureLevel(level) && level <= kMaximumFeatureLevel) best = std::max(best, level);
  }
  if (best == 0) return InvalidArgument("none of the levels is supported; the highest is 11_0");
  data->MaxSupportedFeatureLevel = best;
  return {};
}

Status ShaderModel(D3D12_FEATURE_DATA_SHADER_MODEL* data) {
  if (data->HighestShaderModel < D3D_SHADER_MODEL_5_1)
    return InvalidArgument("HighestShaderModel is unknown");
  data->HighestShaderModel = D3D_SHADER_MODEL_5_1;  // Direct3D 12 requires a value; there are no shaders
  return {};
}

Status RootSignature(D3D12_FEATURE_DATA_ROOT_SIGNATURE* data) {
  if (data->HighestVersion < D3D_ROOT_SIGNATURE_VERSION_1_0)
    return InvalidArgument("HighestVersion is unknown");
  data->HighestVersion = std::min(data->HighestVersion, D3D_ROOT_SIGNATURE_VERSION_1_1);
  return {};
}

Status QueuePriority(D3D12_FEATURE_DATA_COMMAND_QUEUE_PRIORITY* data) {
  const bool type = data->CommandListType == D3D12_COMMAND_LIST_TYPE_DIRECT ||
                    data->CommandListType == D3D12_COMMAND_LIST_TYPE_COMPUTE ||
                    data->CommandListType == D3D12_COMMAND_LIST_TYPE_COPY;
  const bool priority = data->Priority == D3D12_COMMAND_QUEUE_PRIORITY_NORMAL ||
                        data->Priority == D3D12_COMMAND_QUEUE_PRIORITY_HIGH;
  data->PriorityForTypeIsSupported = type && priority;
  return {};
}

D3D12_FEATURE_DATA_D3D12_OPTIONS Options() {
  D3D12_FEATURE_DATA_D3D12_OPTIONS options{};
  options.DoublePrecisionFloatShaderOps = TRUE;
  options.TiledResourcesTier = D3D12_TILED_RESOURCES_TIER_NOT_SUPPORTED;
  options.ResourceBindingTier = D3D12_RESOURCE_BINDING_TIER_3;
  options.TypedUAVLoadAdditionalFormats = TRUE;
  options.MaxGPUVirtualAddressBitsPerResource = kAddressBits;
  options.ResourceHeapTier = D3D12_RESOURCE_HEAP_TIER_2;
  return options;
}

D3D12_FEATURE_DATA_D3D12_OPTIONS3 Options3() {
  D3D12_FEATURE_DATA_D3D12_OPTIONS3 options{};
  options.CopyQueueTimestampQueriesSupported = TRUE;
  options.WriteBufferImmediateSupportFlags = D3D12_COMMAND_LIST_SUPPORT_FLAG_DIRECT |
                                             D3D12_COMMAND_LIST_SUPPORT_FLAG_COMPUTE |
                                             D3D12_COMMAND_LIST_SUPPORT_FLAG_COPY;
  return options;
}

D3D12_FEATURE_DATA_D3D12_OPTIONS4 Options4() {
  D3D12_FEATURE_DATA_D3D12_OPTIONS4 options{};
  options.Native16BitShaderOpsSupported = TRUE;
  return options;
}

D3D12_FEATURE_DATA_D3D12_OPTIONS19 Options19() {
  D3D12_FEATURE_DATA_D3D12_OPTIONS19 options{};
  options.MaxSamplerDescriptorHeapSize = D3D12_MAX_SHADER_VISIBLE_SAMPLER_HEAP_SIZE;
  options.MaxSamplerDescriptorHeapSizeWithStaticSamplers = D3D12_MAX_SHADER_VISIBLE_SAMPLER_HEAP_SIZE;
  options.MaxViewDescriptorHeapSize = D3D12_MAX_SHADER_VISIBLE_DESCRIPTOR_HEAP_SIZE_TIER_2;
  options.ComputeOnlyCustomHeapSupported = TRUE;
  return options;
}

Status Formats(D3D12_FEATURE feature, void* data, UINT size) {
  switch (feature) {
    case D3D12_FEATURE_FORMAT_SUPPORT:
      return Answer<D3D12_FEATURE_DATA_FORMAT_SUPPORT>(
          data, size, [](D3D12_FEATURE_DATA_FORMAT_SUPPORT* support) {
            const bool buffer = support->Format == DXGI_FORMAT_UNKNOWN || FormatBytes(support->Format) != 0;
            support->Support1 = buffer ? D3D12_FORMAT_SUPPORT1_BUFFER : D3D12_FORMAT_SUPPORT1_NONE;
            support->Support2 = D3D12_FORMAT_SUPPORT2_NONE;
            return Status();
          });
    case D3D12_FEATURE_FORMAT_INFO:
      return Answer<D3D12_FEATURE_DATA_FORMAT_INFO>(data, size, [](D3D12_FEATURE_DATA_FORMAT_INFO* info) {
        info->PlaneCount = 1;
        return Status();
      });
    default:
      return Answer<D3D12_FEATURE_DATA_MULTISAMPLE_QUALITY_LEVELS>(
          data, size, [](D3D12_FEATURE_DATA_MULTISAMPLE_QUALITY_LEVELS* levels) {
            levels->NumQualityLevels = 0;
            return Status();
          });
  }
}

// Features whose struct reports only things that this device lacks.
Status Absent(D3D12_FEATURE feature, void* data, UINT size) {
  switch (feature) {
    case D3D12_FEATURE_D3D12_OPTIONS2:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS2>(data, size);
    case D3D12_FEATURE_SHADER_CACHE:
      return AnswerNothing<D3D12_FEATURE_DATA_SHADER_CACHE>(data, size);
    case D3D12_FEATURE_EXISTING_HEAPS:
      return AnswerNothing<D3D12_FEATURE_DATA_EXISTING_HEAPS>(data, size);
    case D3D12_FEATURE_CROSS_NODE:
      return AnswerNothing<D3D12_FEATURE_DATA_CROSS_NODE>(data, size);
    case D3D12_FEATURE_DISPLAYABLE:
      return AnswerNothing<D3D12_FEATURE_DATA_DISPLAYABLE>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS5:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS5>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS6:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS6>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS7:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS7>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS8:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS8>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS9:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS9>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS10:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS10>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS11:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS11>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS12:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS12>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS13:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS13>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS14:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS14>(data, size);
    case D3D12_FEATURE_D3D12_OPTIONS15:
      return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS15>(data, size);
    default:
      break;
  }
  // Values that older headers lack as enumerators.
  if (feature == D3D12_FEATURE_D3D12_OPTIONS16)
    return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS16>(data, size);
  if (feature == D3D12_FEATURE_D3D12_OPTIONS17)
    return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS17>(data, size);
  if (feature == D3D12_FEATURE_D3D12_OPTIONS18)
    return AnswerNothing<D3D12_FEATURE_DATA_D3D12_OPTIONS18>(data, size);
  if (feature == D3D12_FEATURE_D3D12_OPTIONS19) return Answer(data, size, Options19());
  return InvalidArgument("Feature is ", feature, ", which is unknown");
}

// Features whose struct also has inputs, which must be preserved.
Status WithInput(const AdapterInfo& adapter, D3D12_FEATURE feature, void* data, UINT size) {
  switch (feature) {
    case D3D12_FEATURE_ARCHITECTURE:
      return Answer<D3D12_FEATURE_DATA_ARCHITECTURE>(data, size, [&](D3D12_FEATURE_DATA_ARCHITECTURE* a) {
        return Architecture(adapter, a->NodeIndex, &a->TileBasedRenderer, &a->UMA, &a->CacheCoherentUMA);
      });
    case D3D12_FEATURE_ARCHITECTURE1:
      return Answer<D3D12_FEATURE_DATA_ARCHITECTURE1>(data, size, [&](D3D12_FEATURE_DATA_ARCHITECTURE1* a) {
        a->IsolatedMMU = FALSE;
        return Architecture(adapter, a->NodeIndex, &a->TileBasedRenderer, &a->UMA, &a->CacheCoherentUMA);
      });
    case D3D12_FEATURE_FEATURE_LEVELS:
      return Answer<D3D12_FEATURE_DATA_FEATURE_LEVELS>(data, size, FeatureLevels);
    case D3D12_FEATURE_SHADER_MODEL:
      return Answer<D3D12_FEATURE_DATA_SHADER_MODEL>(data, size, ShaderModel);
    case D3D12_FEATURE_ROOT_SIGNATURE:
      return Answer<D3D12_FEATURE_DATA_ROOT_SIGNATURE>(data, size, RootSignature);
    case D3D12_FEATURE_COMMAND_QUEUE_PRIORITY:
      return Answer<D3D12_FEATURE_DATA_COMMAND_QUEUE_PRIORITY>(data, size, QueuePriority);
    case D3D12_FEATURE_SERIALIZATION:
      return Answer<D3D12_FEATURE_DATA_SERIALIZATION>(data, size, [](D3D12_FEATURE_DATA_SERIALIZATION* s) {
        s->HeapSerializationTier = D3D12_HEAP_SERIALIZATION_TIER_0;
        return Status();
      });
    case D3D12_FEATURE_PROTECTED_RESOURCE_SESSION_SUPPORT:
      return Answer<D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_SUPPORT>(
          data, size, [](D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_SUPPORT* s) {
            s->Support = D3D12_PROTECTED_RESOURCE_SESSION_SUPPORT_FLAG_NONE;
            return Status();
          });
    case D3D12_FEATURE_PROTECTED_RESOURCE_SESSION_TYPE_COUNT:
      return Answer<D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPE_COUNT>(
          data, size, [](D3D12_FEATURE_DATA_PROTECTED_RESOURCE_SESSION_TYPE_COUNT* s) {
            s->Count = 0;
            return Status();
          });
    default:
      return Absent(feature, data, size);
  }
}

Status Check(const AdapterInfo& adapter, D3D12_FEATURE feature, void* data, UINT size) {
  switch (feature) {
    case D3D12_FEATURE_D3D12_OPTIONS:
      return Answer(data, size, Options());
    case D3D12_FEATURE_D3D12_OPTIONS1:
      // No wave operations; 64-bit integers are supported.
      return Answer(data, size, D3D12_FEATURE_DATA_D3D12_OPTIONS1{FALSE, 0, 0, 0, FALSE, TRUE});
    case D3D12_FEATURE_D3D12_OPTIONS3:
      return Answer(data, size, Options3());
    case D3D12_FEATURE_D3D12_OPTIONS4:
      return Answer(data, size, Options4());
    case D3D12_FEATURE_GPU_VIRTUAL_ADDRESS_SUPPORT:
      return Answer(data, size, D3D12_FEATURE_DATA_GPU_VIRTUAL_ADDRESS_SUPPORT{kAddressBits, kAddressBits});
    case D3D12_FEATURE_FORMAT_SUPPORT:
    case D3D12_FEATURE_FORMAT_INFO:
    case D3D12_FEATURE_MULTISAMPLE_QUALITY_LEVELS:
      return Formats(feature, data, size);
    default:
      return WithInput(adapter, feature, data, size);
  }
}

}  // namespace

HRESULT Device::CheckFeatureSupport(D3D12_FEATURE feature, void* data, UINT size) {
  return Guard([&] {
    if (data == nullptr) return Fail(E_INVALIDARG, "CheckFeatureSupport: pFeatureSupportData is null");
    const Status status = Check(backend_.adapter(), feature, data, size);
    return status.ok() ? S_OK : Fail("CheckFeatureSupport", status);
  });
}

}  // namespace anydml::d3d12
