// A column: a backend's implementations, by family. If a family is missing, or no implementation of it takes
// a problem, the host runs it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/device_traits.h"

namespace anydml {

template <typename Problem>
struct Implementation;  // ops/implementation_list.h

class Column {
 public:
  // Registers a family's implementations, fastest first. `Problem::kFamily` names the family; `entries` live
  // as long as the process.
  template <typename Problem>
  void Add(std::span<const Implementation<Problem>> entries) {
    Family family = {Problem::kFamily, entries.data(), entries.size(), {}};
    for (const Implementation<Problem>& entry : entries) family.names.push_back(entry.name);
    families_.push_back(std::move(family));
  }

  // Empty if the backend does not have the family.
  template <typename Problem>
  std::span<const Implementation<Problem>> Of() const {
    const Family* const family = Find(Problem::kFamily);
    if (family == nullptr) return {};
    return {static_cast<const Implementation<Problem>*>(family->entries), family->count};
  }
  std::span<const char* const> NamesOf(std::string_view family) const {
    const Family* const found = Find(family);
    return found != nullptr ? std::span<const char* const>(found->names) : std::span<const char* const>();
  }

 private:
  struct Family {
    std::string_view name;
    const void* entries;  // of Implementation<Problem>; a problem type identifies its family
    size_t count;
    std::vector<const char*> names;
  };

  const Family* Find(std::string_view name) const {
    for (const Family& family : families_) {
      if (family.name == name) return &family;
    }
    return nullptr;
  }

  std::vector<Family> families_;
};

// The CPU's column. A module with another backend has an empty one, since it lowers nothing for the host.
const Column& HostColumn();

inline const Column& ColumnOf(const DeviceTraits& device) {
  return device.column != nullptr ? *device.column : HostColumn();
}

}  // namespace anydml
