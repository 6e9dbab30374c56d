#include "ops/reduce/cuda/everything.cuh"

namespace anydml::reduce {

Launch FindIntegerLaunch(Accumulation kind, bool last, DataType type) {
  switch (type) {
    case DataType::kInt64:
      return LaunchOf<int64_t>(kind, last);
    case DataType::kUInt64:
      return LaunchOf<uint64_t>(kind, last);
    case DataType::kUInt32:
    case DataType::kUInt16:
    case DataType::kUInt8:
      return LaunchOf<uint32_t>(kind, last);
    default:
      return LaunchOf<int32_t>(kind, last);
  }
}

}  // namespace anydml::reduce
