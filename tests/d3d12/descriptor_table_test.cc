// Below the public interface: a test cannot create half a billion descriptor heaps.
#include "d3d12/descriptors/descriptor_table.h"

#include <gtest/gtest.h>

#include <set>

namespace anydml::d3d12 {
namespace {

constexpr auto kViews = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
using HeapId = DescriptorTable::HeapId;

void ExpectWorks(DescriptorTable& table, HeapId id) {
  SCOPED_TRACE(id);
  EXPECT_TRUE(table.Valid(DescriptorTable::CpuStart(id), 4, kViews));
  EXPECT_TRUE(table.Valid(DescriptorTable::GpuStart(id), 4, kViews));
  EXPECT_FALSE(table.Valid(DescriptorTable::CpuStart(id), 5, kViews));
  EXPECT_EQ(DescriptorTable::HeapOf(DescriptorTable::GpuStart(id)), id);
}

TEST(DescriptorTable, NumbersComeAgain) {
  DescriptorTable table;
  const HeapId first = table.AddHeap(kViews, 4, true);
  const HeapId second = table.AddHeap(kViews, 4, true);
  const HeapId third = table.AddHeap(kViews, 4, true);
  table.RemoveHeap(second);
  table.ContinueAt(DescriptorTable::kLastHeapId);
  const HeapId last = table.AddHeap(kViews, 4, true);
  EXPECT_EQ(last, DescriptorTable::kLastHeapId);
  const HeapId again = table.AddHeap(kViews, 4, true);
  EXPECT_EQ(again, second);  // the first one that is not allocated
  const HeapId next = table.AddHeap(kViews, 4, true);
  std::set<uint64_t> handles;
  for (const HeapId id : {first, third, last, again, next}) {
    ExpectWorks(table, id);
    handles.insert(DescriptorTable::CpuStart(id).ptr);
    handles.insert(DescriptorTable::GpuStart(id).ptr);
  }
  EXPECT_EQ(handles.size(), 10u);
}

}  // namespace
}  // namespace anydml::d3d12
