// Direct3D and DirectML as a state machine: calls in random order, valid and invalid, from several threads.
// Nothing may crash, hang or leak; valid dispatches must give the right result.
#include <iterator>
#include <thread>
#include <vector>

#include <anydml.h>

#include "call_worker.h"
#include "base/status.h"

namespace anydml::fuzz {

void CallWorker::Run() {
  using Call = void (CallWorker::*)();
  // The first byte of a step is an index into this list: append only, or the corpus changes its meaning.
  static constexpr Call kCalls[] = {
      &CallWorker::CreateDevices,
      &CallWorker::CreateQueue,
      &CallWorker::CreateList,
      &CallWorker::CreateFence,
      &CallWorker::CreateHeap,
      &CallWorker::CreateBuffer,
      &CallWorker::CreatePlaced,
      &CallWorker::CreateDescriptors,
      &CallWorker::ReleaseSomething,
      &CallWorker::RemoveDevice,
      &CallWorker::Map,
      &CallWorker::OpenOrClose,
      &CallWorker::Copy,
      &CallWorker::Barrier,
      &CallWorker::SetDescriptorHeaps,
      &CallWorker::ViewAndClear,
      &CallWorker::Execute,
      &CallWorker::QueueSignalOrWait,
      &CallWorker::FenceSignalOrWait,
      &CallWorker::AskDevice,
      &CallWorker::CreateOperator,
      &CallWorker::Compile,
      &CallWorker::Initializer,
      &CallWorker::Table,
      &CallWorker::BindTensors,
      &CallWorker::BindResource,
      &CallWorker::RecordDispatch,
      &CallWorker::Residency,
      &CallWorker::RunChecked,
      &CallWorker::CompileGraph,
  };
  while (!source_.empty()) (this->*kCalls[source_.Byte() % std::size(kCalls)])();
}

namespace {

constexpr size_t kMaxBytes = 512;  // for calls: a run takes milliseconds

void Run(ByteSource source) {
  const uint32_t thread_count = source.OneIn(3) ? source.Between(2, 3) : 1;
  const size_t shared_bytes = source.Byte();
  {
    SharedObjects shared;
    std::vector<OwnObjects> own(thread_count);
    // Creates all devices and queues first, so that short inputs reach far; then makes one thread's calls.
    const uint8_t first[] = {0, 0, 0, 1, 2, 3, 5, 7};
    CallWorker({first, sizeof(first)}, &shared, &own[0]).Run();
    const auto prologue = source.Take(shared_bytes);
    CallWorker({prologue.data(), prologue.size()}, &shared, &own[0]).Run();
    const auto rest = source.Take(kMaxBytes);
    std::vector<std::thread> threads;
    const size_t share = rest.size() / thread_count;
    for (uint32_t t = 1; t < thread_count; ++t) {
      threads.emplace_back([&, part = rest.subspan(t * share, share), t] {
        CallWorker({part.data(), part.size()}, &shared, &own[t]).Run();
      });
    }
    CallWorker({rest.data(), share}, &shared, &own[0]).Run();
    for (std::thread& thread : threads) thread.join();
  }
  Require(AnyDmlGetLiveObjectCount() == 0, StrCat(AnyDmlGetLiveObjectCount(), " objects were left behind"));
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
