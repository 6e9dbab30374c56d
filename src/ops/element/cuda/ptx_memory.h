// How a compiled program moves elements between tensors and registers. Full blocks of aligned tensors move
// groups of elements at once; others move each element by itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/element/cuda/machine.cuh"
#include "ops/element/cuda/ptx_values.h"
#include "ops/element/cuda/ptx_writer.h"

namespace anydml::element_cuda {

class PtxMemory {
 public:
  PtxMemory(const MachinePlan& plan, PtxWriter* writer);

  std::string Parameters() const;
  void WriteLoads();
  const std::vector<PtxElements>& inputs() const { return inputs_; }

  // `words`: the thread's elements (PtxValues::Elements), for WriteStores.
  void AddStore(uint32_t operand, std::vector<std::string> words) { stores_.push_back({operand, words}); }
  void WriteStores();

 private:
  struct Store {
    uint32_t operand;
    std::vector<std::string> words;
  };

  uint32_t groups() const { return kPtxElements / group_; }
  uint32_t BytesOf(uint32_t operand) const { return machine_.operands[operand].bits / 8; }
  bool IsUniform(uint32_t operand) const;
  // Whether the operand's groups are loaded or stored at once.
  bool IsVector(uint32_t operand) const { return machine_.operands[operand].access == Access::kVector; }

  void WritePlace();
  void WriteAddresses();
  std::vector<std::string> Coordinates(const std::string& index);
  void WritePredicates();
  void PlaceInput(uint32_t input);
  void LoadInput(uint32_t input, bool guarded);
  void StoreOutput(const Store& store, bool guarded);

  // "[address+bytes]" of element `e`.
  std::string At(uint32_t operand, uint32_t e);
  std::string Guard(uint32_t e, bool guarded) const { return guarded ? "@" + there_[e] + " " : ""; }

  const Machine& machine_;
  const uint32_t operands_;
  PtxWriter& w_;
  const uint32_t group_;
  std::string inside_, elements_;
  std::array<std::string, kPtxElements> there_;                   // predicates
  std::vector<std::string> indices_;                              // per group: of its first element
  std::vector<std::array<std::string, kPtxElements>> addresses_;  // per operand and group
  std::vector<PtxElements> inputs_;
  std::vector<Store> stores_;
};

}  // namespace anydml::element_cuda
