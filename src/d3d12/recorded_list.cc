#include "d3d12/recorded_list.h"

#include <algorithm>

namespace anydml::d3d12 {

void RecordedList::Finish() {
  for (const auto& command : commands) {
    const auto used = command->resources();
    resources.insert(resources.end(), used.begin(), used.end());
  }
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  if (!resources.empty() && resources.front() == nullptr) resources.erase(resources.begin());
}

}  // namespace anydml::d3d12
