#include "kernel/part_recorder.h"

#include <atomic>

namespace anydml {
namespace {

std::atomic<RecordPart> g_record = nullptr;
std::atomic<void*> g_context = nullptr;

}  // namespace

void SetPartRecorder(const PartRecorder& recorder) {
  g_context.store(recorder.context, std::memory_order_relaxed);
  g_record.store(recorder.record, std::memory_order_release);
}

PartRecorder CurrentPartRecorder() {
  const RecordPart record = g_record.load(std::memory_order_acquire);
  return {record, record != nullptr ? g_context.load(std::memory_order_relaxed) : nullptr};
}

}  // namespace anydml
