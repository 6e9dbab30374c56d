// A backend is a column: the implementations that it has, by family. A family that is not there, and a
// problem that no implementation of the family takes, runs on the host.
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
  // The family's implementations, fastest first. `Problem::kFamily` names the family; `entries` live as long
  // as the process.
  template <typename Problem>
  void Add(std::span<const Implementation<Problem>> entries) {
    Family family = {Problem::kFamily, entries.data(), entries.size(), {}};
    for (const Implementation<Problem>& entry : entries) family.names.push_back(entry.name);
    families_.push_back(std::move(family));
  }

  // Empty where the backend does not know the family.
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
    const void* entries;  // of Implementation<Problem>: one problem has one family
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

// The CPU's. A module with another backend has an empty one: it lowers nothing for the host.
const Column& HostColumn();

inline const Column& ColumnOf(const DeviceTraits& device) {
  return device.column != nullptr ? *device.column : HostColumn();
}

}  // namespace anydml
