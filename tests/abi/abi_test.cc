// The binary interface: layouts and values (at compile time), IIDs and vtable
// slots (at run time).
#include <DirectML.h>
#include <dxgi1_6.h>

#include "declarations_check.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <string>
#include <type_traits>

#include <gtest/gtest.h>

static_assert(DML_TARGET_VERSION == 0x6400, "the latest version by default");

namespace {

std::string ToString(const GUID& guid) {
  char text[40];
  snprintf(text, sizeof(text), "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x",
           static_cast<unsigned>(guid.Data1), guid.Data2, guid.Data3, guid.Data4[0], guid.Data4[1],
           guid.Data4[2], guid.Data4[3], guid.Data4[4], guid.Data4[5], guid.Data4[6], guid.Data4[7]);
  return text;
}

// All ways in which programs obtain an IID agree.
template <typename T>
std::string Iid() {
  const std::string iid = ToString(__uuidof(T));
  EXPECT_EQ(iid, ToString(__uuidof(T*)));
  EXPECT_EQ(iid, ToString(uuidof<T>()));
  T* pointer = nullptr;
  EXPECT_EQ(iid, ToString(uuidof(pointer)));
  EXPECT_EQ(iid, ToString(uuidof(&pointer)));
  return iid;
}

// The vtable slot that a call through `method` uses. In the Itanium ABI, a pointer to a virtual member
// function holds the slot's byte offset. The mark for virtual functions is bit 0 of that word, or on ARM bit
// 0 of the second word.
template <typename Method>
int Slot(Method method) {
  static_assert(sizeof(method) == 2 * sizeof(uintptr_t), "Itanium C++ ABI");
  uintptr_t words[2];
  memcpy(words, &method, sizeof(words));
#if defined(__aarch64__) || defined(__arm__)
  EXPECT_EQ(words[1] & 1, 1u) << "not virtual";
  const uintptr_t offset = words[0];
#else
  EXPECT_EQ(words[0] & 1, 1u) << "not virtual";
  const uintptr_t offset = words[0] - 1;
#endif
  return static_cast<int>(offset / sizeof(void*));
}

// An interface has a vtable pointer and nothing else: no virtual destructor, no second base. An additional
// virtual function in a derived class takes the slot after the interface's last.
template <typename Interface>
struct OneMore : Interface {
  virtual void Next() = 0;
};

template <typename Interface>
int SlotCount() {
  static_assert(sizeof(Interface) == sizeof(void*), "");
  static_assert(!std::has_virtual_destructor<Interface>::value, "");
  return Slot(&OneMore<Interface>::Next);
}

TEST(Iids, DirectMl) {
  EXPECT_EQ(Iid<IDMLObject>(), "c8263aac-9e0c-4a2d-9b8e-007521a3317c");
  EXPECT_EQ(Iid<IDMLDevice>(), "6dbd6437-96fd-423f-a98c-ae5e7c2a573f");
  EXPECT_EQ(Iid<IDMLDevice1>(), "a0884f9a-d2be-4355-aa5d-5901281ad1d2");
  EXPECT_EQ(Iid<IDMLDeviceChild>(), "27e83142-8165-49e3-974e-2fd66e4cb69d");
  EXPECT_EQ(Iid<IDMLPageable>(), "b1ab0825-4542-4a4b-8617-6dde6e8f6201");
  EXPECT_EQ(Iid<IDMLOperator>(), "26caae7a-3081-4633-9581-226fbe57695d");
  EXPECT_EQ(Iid<IDMLDispatchable>(), "dcb821a8-1039-441e-9f1c-b1759c2f3cec");
  EXPECT_EQ(Iid<IDMLCompiledOperator>(), "6b15e56a-bf5c-4902-92d8-da3a650afea4");
  EXPECT_EQ(Iid<IDMLOperatorInitializer>(), "427c1113-435c-469c-8676-4d5dd072f813");
  EXPECT_EQ(Iid<IDMLBindingTable>(), "29c687dc-de74-4e3b-ab00-1168f2fc3cfc");
  EXPECT_EQ(Iid<IDMLCommandRecorder>(), "e6857a76-2e3e-4fdd-bff4-5d2ba10fb453");
  EXPECT_EQ(Iid<IDMLDebugDevice>(), "7d6f3ac9-394a-4ac3-92a7-390cc57a8217");
}

TEST(Iids, OthersThatTheHeadersSupply) {
  EXPECT_EQ(Iid<IDXGIFactory4>(), "1bc6ea02-ef36-464f-bf0c-21ca39e5168a");
  EXPECT_EQ(Iid<IDXGIFactory6>(), "c1b6694f-ff09-44a9-b03c-77900a0a1d17");
  EXPECT_EQ(Iid<IDXGIAdapter>(), "2411e7e1-12ac-4ccf-bd14-9798e8534dc0");
  EXPECT_EQ(Iid<IDXGIAdapter1>(), "29038f61-3839-4626-91fd-086879011a05");
  EXPECT_EQ(Iid<IDXGIAdapter3>(), "645967a4-1392-4310-a798-8053ce3e93fd");
  EXPECT_EQ(Iid<IDXCoreAdapterFactory1>(), "d5682e19-6d21-401c-827a-9a51a4ea35d7");
  EXPECT_EQ(Iid<ID3D12Device>(), "189819f1-1db6-4b57-be54-1821339b85f7");
  EXPECT_EQ(Iid<ID3D12InfoQueue>(), "0742a90b-c387-483f-b946-30a7e4e61458");
  EXPECT_EQ(Iid<IDXCoreAdapter>(), "f0db4c7f-fe5a-42a2-bd62-f2a6cf6fc83e");
}

TEST(Iids, PpvArgs) {
  const auto iid_of = [](const IID& iid, void**) { return ToString(iid); };
  IDMLDevice* device = nullptr;
  EXPECT_EQ(iid_of(IID_PPV_ARGS(&device)), "6dbd6437-96fd-423f-a98c-ae5e7c2a573f");
}

TEST(Slots, Object) {
  EXPECT_EQ(Slot(&IDMLObject::GetPrivateData), 3);
  EXPECT_EQ(Slot(&IDMLObject::SetPrivateData), 4);
  EXPECT_EQ(Slot(&IDMLObject::SetPrivateDataInterface), 5);
  EXPECT_EQ(Slot(&IDMLObject::SetName), 6);
  EXPECT_EQ(SlotCount<IDMLObject>(), 7);
}

TEST(Slots, Device) {
  EXPECT_EQ(Slot(&IDMLDevice::CheckFeatureSupport), 7);
  EXPECT_EQ(Slot(&IDMLDevice::CreateOperator), 8);
  EXPECT_EQ(Slot(&IDMLDevice::CompileOperator), 9);
  EXPECT_EQ(Slot(&IDMLDevice::CreateOperatorInitializer), 10);
  EXPECT_EQ(Slot(&IDMLDevice::CreateCommandRecorder), 11);
  EXPECT_EQ(Slot(&IDMLDevice::CreateBindingTable), 12);
  EXPECT_EQ(Slot(&IDMLDevice::Evict), 13);
  EXPECT_EQ(Slot(&IDMLDevice::MakeResident), 14);
  EXPECT_EQ(Slot(&IDMLDevice::GetDeviceRemovedReason), 15);
  EXPECT_EQ(Slot(&IDMLDevice::GetParentDevice), 16);
  EXPECT_EQ(SlotCount<IDMLDevice>(), 17);
  EXPECT_EQ(Slot(&IDMLDevice1::CompileGraph), 17);
  EXPECT_EQ(SlotCount<IDMLDevice1>(), 18);
}

TEST(Slots, Children) {
  EXPECT_EQ(Slot(&IDMLDeviceChild::GetDevice), 7);
  EXPECT_EQ(SlotCount<IDMLDeviceChild>(), 8);
  EXPECT_EQ(SlotCount<IDMLPageable>(), 8);
  EXPECT_EQ(SlotCount<IDMLOperator>(), 8);
  EXPECT_EQ(Slot(&IDMLDispatchable::GetBindingProperties), 8);
  EXPECT_EQ(SlotCount<IDMLDispatchable>(), 9);
  EXPECT_EQ(SlotCount<IDMLCompiledOperator>(), 9);
  EXPECT_EQ(Slot(&IDMLOperatorInitializer::Reset), 9);
  EXPECT_EQ(SlotCount<IDMLOperatorInitializer>(), 10);
  EXPECT_EQ(Slot(&IDMLBindingTable::BindInputs), 8);
  EXPECT_EQ(Slot(&IDMLBindingTable::BindOutputs), 9);
  EXPECT_EQ(Slot(&IDMLBindingTable::BindTemporaryResource), 10);
  EXPECT_EQ(Slot(&IDMLBindingTable::BindPersistentResource), 11);
  EXPECT_EQ(Slot(&IDMLBindingTable::Reset), 12);
  EXPECT_EQ(SlotCount<IDMLBindingTable>(), 13);
  EXPECT_EQ(Slot(&IDMLCommandRecorder::RecordDispatch), 8);
  EXPECT_EQ(SlotCount<IDMLCommandRecorder>(), 9);
  EXPECT_EQ(Slot(&IDMLDebugDevice::SetMuteDebugOutput), 3);
  EXPECT_EQ(SlotCount<IDMLDebugDevice>(), 4);
}

TEST(Slots, Dxgi) {
  EXPECT_EQ(Slot(&IDXGIObject::GetParent), 6);
  EXPECT_EQ(Slot(&IDXGIAdapter::EnumOutputs), 7);
  EXPECT_EQ(Slot(&IDXGIAdapter::GetDesc), 8);
  EXPECT_EQ(Slot(&IDXGIAdapter::CheckInterfaceSupport), 9);
  EXPECT_EQ(Slot(&IDXGIAdapter1::GetDesc1), 10);
  EXPECT_EQ(Slot(&IDXGIAdapter2::GetDesc2), 11);
  EXPECT_EQ(Slot(&IDXGIAdapter3::QueryVideoMemoryInfo), 14);
  EXPECT_EQ(Slot(&IDXGIAdapter4::GetDesc3), 18);
  EXPECT_EQ(Slot(&IDXGIFactory::EnumAdapters), 7);
  EXPECT_EQ(Slot(&IDXGIFactory::CreateSoftwareAdapter), 11);
  EXPECT_EQ(Slot(&IDXGIFactory1::EnumAdapters1), 12);
  EXPECT_EQ(Slot(&IDXGIFactory1::IsCurrent), 13);
  EXPECT_EQ(Slot(&IDXGIFactory2::CreateSwapChainForComposition), 24);
  EXPECT_EQ(Slot(&IDXGIFactory3::GetCreationFlags), 25);
  EXPECT_EQ(Slot(&IDXGIFactory4::EnumAdapterByLuid), 26);
  EXPECT_EQ(Slot(&IDXGIFactory4::EnumWarpAdapter), 27);
  EXPECT_EQ(Slot(&IDXGIFactory5::CheckFeatureSupport), 28);
  EXPECT_EQ(Slot(&IDXGIFactory6::EnumAdapterByGpuPreference), 29);
  EXPECT_EQ(SlotCount<IDXGIFactory7>(), 32);
}

// Returned through a hidden pointer, which precedes `this` here but follows it on Windows; C++ callers are
// not affected.
static_assert(std::is_same<decltype(&IDMLDispatchable::GetBindingProperties),
                           DML_BINDING_PROPERTIES (IDMLDispatchable::*)()>::value,
              "");

TEST(Enums, FlagsCombine) {
  DML_EXECUTION_FLAGS flags =
      DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION | DML_EXECUTION_FLAG_DISABLE_META_COMMANDS;
  EXPECT_EQ(static_cast<int>(flags), 3);
  flags |= DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE;
  flags &= ~DML_EXECUTION_FLAG_DISABLE_META_COMMANDS;
  EXPECT_EQ(static_cast<int>(flags), 5);
  EXPECT_EQ(DML_TENSOR_FLAG_NONE | DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_OWNED_BY_DML);
  EXPECT_EQ(DML_CREATE_DEVICE_FLAG_NONE | DML_CREATE_DEVICE_FLAG_DEBUG, DML_CREATE_DEVICE_FLAG_DEBUG);
}

TEST(Enums, OperatorTypesHaveNoGaps) {
  EXPECT_EQ(DML_OPERATOR_SCATTER, DML_OPERATOR_SCATTER_ELEMENTS);
  int count = 0;
#undef ABI_ENUM_TYPE
#undef ABI_ENUM_VALUE
#undef ABI_STRUCT
#undef ABI_FIELD
#undef ABI_ALIAS
#define ABI_ENUM_TYPE(type)
#define ABI_ENUM_VALUE(type, name, number) \
  if (std::is_same<type, DML_OPERATOR_TYPE>::value && number == count) ++count;
#define ABI_STRUCT(type, size)
#define ABI_FIELD(type, field, ctype, offset)
#define ABI_ALIAS(alias, type)
#include "abi_operators_generated.inc"
  EXPECT_EQ(count, 178);  // INVALID and 1 to 177.
}

}  // namespace
