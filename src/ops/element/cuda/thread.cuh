// One thread of the machine: its place among the elements, its part of shared memory, and the movement of
// elements between tensors and slots.
#pragma once

#include "ops/device/cuda/memory.cuh"
#include "ops/element/cuda/machine.cuh"
#include "ops/numbers/math/narrow.h"

namespace anydml::element_cuda {

// Word: of a register.
template <typename Word>
class Thread {
 public:
  static constexpr uint32_t kElements = kRegisterBytes / sizeof(Word);
  static constexpr uint32_t kBlockElements = kElements * kThreads;

  ANYDML_LANE Thread(const Machine& machine, std::byte* shared, uint32_t block, uint32_t thread)
      : m_(machine), shared_(shared), thread_(thread) {
    if (m_.tiled) {
      uint32_t row_tile, column_tile;
      outer_ = m_.row_tiles.Divide(m_.column_tiles.Divide(block, &column_tile), &row_tile);
      first_row_ = row_tile << m_.log2_rows;
      first_column_ = column_tile << m_.log2_columns;
    } else {
      begin_ = uint64_t{block} * kBlockElements;
    }
    if (!IsBlockInside()) FindValid();
  }

  ANYDML_LANE const Machine& machine() const { return m_; }

  // Starts to copy an input's elements to its slot. The caller waits for the copies and, for tiles, for the
  // block.
  ANYDML_LANE void Load(uint32_t input) const {
    const MachineOperand& operand = m_.operands[input];
    std::byte* const slot = Slot(input);
    if (operand.bits == 4) return Load4Bits(operand, slot);
    const uint32_t bytes = operand.bits / 8;
    if (operand.access == Access::kVector && whole_groups_) {
      for (uint32_t e = 0; e < kElements; e += GroupMask() + 1) {
        if ((valid_ >> e & 1) == 0) continue;
        CopyGroup(slot + Place(e, bytes), operand.data + OffsetOf(operand, e) * bytes, bytes);
      }
      return;
    }
    ForWidth(bytes, [&]<typename T>() {
      if constexpr (sizeof(T) <= sizeof(Word)) {
        if (operand.access == Access::kTile) {
          LoadTile<T>(operand, slot);
        } else if (operand.access == Access::kRepeated) {
          LoadRepeated<T>(operand, slot);
        } else {
          LoadSingles<T>(operand, slot);
        }
      }
    });
  }

  // Reads the elements of a slot.
  template <bool kTile, typename T>
  ANYDML_LANE Pack<T, kElements> Elements(uint32_t number) const {
    const std::byte* const slot = Slot(number);
    Pack<T, kElements> pack;
    if constexpr (kTile) {
      ANYDML_UNROLL
      for (uint32_t e = 0; e < kElements; ++e) {
        pack.elements[e] = reinterpret_cast<const T*>(slot)[PaddedPlace(RowOf(e), ColumnOf(e))];
      }
    } else if constexpr (sizeof(pack) == 2 * sizeof(uint4)) {
      Pack<T, kElements / 2> low, high;
      Read(slot + thread_ * sizeof(uint4), &low);
      Read(slot + (kThreads + thread_) * sizeof(uint4), &high);
      ANYDML_UNROLL
      for (uint32_t e = 0; e < kElements / 2; ++e) {
        pack.elements[e] = low.elements[e];
        pack.elements[kElements / 2 + e] = high.elements[e];
      }
    } else {
      Read(slot + thread_ * sizeof(pack), &pack);
    }
    return pack;
  }

  template <typename T>
  ANYDML_LANE void Keep(uint32_t slot, const Pack<T, kElements>& pack) const {
    WriteSlot(Slot(slot), pack);
  }

  template <typename T>
  ANYDML_LANE void Store(const MachineOperand& operand, const Pack<T, kElements>& pack) const {
    T* const data = reinterpret_cast<T*>(operand.data);
    if (operand.access == Access::kVector && whole_groups_) {
      StoreGroups(operand, pack);
      return;
    }
    ForOffsets(operand, [&](uint32_t e, uint64_t offset) { data[offset] = pack.elements[e]; });
  }

  // Stores the low 4 bits of each element. Two threads may share a byte, unless the elements are a group.
  ANYDML_LANE void Store4Bits(const MachineOperand& operand, const Pack<uint8_t, kElements>& pack) const {
    if (operand.access == Access::kVector && whole_groups_) {
      Pack<uint8_t, kElements / 2> bytes;
      ANYDML_UNROLL
      for (uint32_t i = 0; i < kElements / 2; ++i) {
        bytes.elements[i] =
            Put4Bits(Put4Bits(0, false, pack.elements[2 * i]), true, pack.elements[2 * i + 1]);
      }
      StoreGroups(operand, bytes, 2);
      return;
    }
    ForOffsets(operand, [&](uint32_t e, uint64_t offset) {
      const uintptr_t address = reinterpret_cast<uintptr_t>(operand.data) + offset / 2;
      auto* const word = reinterpret_cast<uint32_t*>(address & ~uintptr_t{3});
      const uint32_t shift = static_cast<uint32_t>(address & 3) * 8 + static_cast<uint32_t>(offset & 1) * 4;
      ClearBits(word, 15u << shift);
      SetBits(word, (pack.elements[e] & 15u) << shift);
    });
  }

 private:
  ANYDML_LANE uint32_t GroupMask() const { return (1u << m_.log2_group) - 1; }
  ANYDML_LANE std::byte* Slot(uint32_t slot) const { return shared_ + slot * m_.slot_bytes; }

  // The index of an element within the block.
  ANYDML_LANE uint32_t InBlock(uint32_t e) const {
    return (((e >> m_.log2_group) * kThreads + thread_) << m_.log2_group) + (e & GroupMask());
  }
  ANYDML_LANE uint32_t RowOf(uint32_t e) const { return InBlock(e) >> m_.log2_columns; }
  ANYDML_LANE uint32_t ColumnOf(uint32_t e) const { return InBlock(e) & ((1u << m_.log2_columns) - 1); }
  // Rows of a tile in a slot are padded by one element, so that reads along columns use all banks.
  ANYDML_LANE uint32_t PaddedPlace(uint32_t row, uint32_t column) const {
    return row * ((1u << m_.log2_columns) + 1) + column;
  }

  ANYDML_LANE bool IsInTensor(uint32_t row, uint32_t column) const {
    return first_row_ + row < m_.sizes[m_.rank - 2].divisor() &&
           first_column_ + column < m_.sizes[m_.rank - 1].divisor();
  }
  ANYDML_LANE bool IsInside(uint32_t e) const {
    return m_.tiled ? IsInTensor(RowOf(e), ColumnOf(e)) : begin_ + InBlock(e) < m_.elements;
  }

  ANYDML_LANE bool IsBlockInside() const {
    if (!m_.tiled) return begin_ + kBlockElements <= m_.elements;
    return IsInTensor((1u << m_.log2_rows) - 1, (1u << m_.log2_columns) - 1);
  }
  ANYDML_LANE void FindValid() {
    valid_ = 0;
    ANYDML_UNROLL
    for (uint32_t e = 0; e < kElements; ++e) valid_ |= IsInside(e) ? 1u << e : 0;
    // Only the very last group may be partial.
    const uint32_t group = (1u << (1u << m_.log2_group)) - 1;
    for (uint32_t e = 0; e < kElements; e += GroupMask() + 1) {
      const uint32_t present = valid_ >> e & group;
      whole_groups_ = whole_groups_ && (present == 0 || present == group);
    }
  }

  // The place of a thread's elements in a slot: contiguous, or in two halves, so that 16-byte accesses of
  // neighbouring threads use all banks.
  ANYDML_LANE uint32_t Place(uint32_t e, uint32_t bytes) const {
    const uint32_t at = e * bytes;
    if (kElements * bytes < kRegisterBytes) return thread_ * kElements * bytes + at;
    return (at / 16 * kThreads + thread_) * 16 + at % 16;
  }

  template <typename T>
  ANYDML_LANE void WriteSlot(std::byte* slot, const Pack<T, kElements>& pack) const {
    if constexpr (sizeof(pack) == kRegisterBytes) {
      Write(slot + thread_ * sizeof(uint4), PartOf<0, 2>(pack));
      Write(slot + (kThreads + thread_) * sizeof(uint4), PartOf<1, 2>(pack));
    } else {
      Write(slot + thread_ * sizeof(pack), pack);
    }
  }

  ANYDML_LANE uint64_t OffsetInTile(const MachineOperand& operand, uint32_t row, uint32_t column) const {
    uint64_t offset = uint64_t{first_row_ + row} * operand.strides[m_.rank - 2] +
                      uint64_t{first_column_ + column} * operand.strides[m_.rank - 1];
    uint32_t rest = outer_;
    for (uint32_t d = m_.rank - 2; d-- > 0;) {
      uint32_t at;
      rest = m_.sizes[d].Divide(rest, &at);
      offset += at * operand.strides[d];
    }
    return offset;
  }

  ANYDML_LANE uint64_t OffsetOf(const MachineOperand& operand, uint32_t e) const {
    if (m_.tiled) return OffsetInTile(operand, RowOf(e), ColumnOf(e));
    const uint64_t number = begin_ + InBlock(e);
    if (operand.in_order) return number;
    auto rest = static_cast<uint32_t>(number);
    uint64_t offset = 0;
    for (uint32_t d = m_.rank; d-- > 0;) {
      uint32_t at;
      rest = m_.sizes[d].Divide(rest, &at);
      offset += at * operand.strides[d];
    }
    return offset;
  }

  // From element `first` on; loop by loop, so that divisions do not wait for each other.
  template <uint32_t kCount>
  ANYDML_LANE void OffsetsOf(const MachineOperand& operand, uint32_t first,
                             uint64_t (&offsets)[kCount]) const {
    if (m_.tiled) {
      const uint64_t start = OffsetInTile(operand, 0, 0);
      const uint64_t row = operand.strides[m_.rank - 2], column = operand.strides[m_.rank - 1];
      ANYDML_UNROLL
      for (uint32_t i = 0; i < kCount; ++i) {
        offsets[i] = start + RowOf(first + i) * row + ColumnOf(first + i) * column;
      }
      return;
    }
    if (operand.in_order) {
      ANYDML_UNROLL
      for (uint32_t i = 0; i < kCount; ++i) offsets[i] = begin_ + InBlock(first + i);
      return;
    }
    uint32_t rest[kCount];
    ANYDML_UNROLL
    for (uint32_t i = 0; i < kCount; ++i) {
      rest[i] = static_cast<uint32_t>(begin_) + InBlock(first + i);
      offsets[i] = 0;
    }
    ANYDML_LOOP
    for (uint32_t d = m_.rank; d-- > 0;) {
      const FastDivisor size = m_.sizes[d];
      const uint64_t stride = operand.strides[d];
      ANYDML_UNROLL
      for (uint32_t i = 0; i < kCount; ++i) {
        uint32_t at;
        rest[i] = size.Divide(rest[i], &at);
        offsets[i] += at * stride;
      }
    }
  }

  // Calls f(e, offset) for existing elements; a few at a time, because registers are scarce while there are
  // results.
  template <typename F>
  ANYDML_LANE void ForOffsets(const MachineOperand& operand, F&& f) const {
    constexpr uint32_t kAtATime = 4;
    ANYDML_UNROLL
    for (uint32_t first = 0; first < kElements; first += kAtATime) {
      uint64_t offsets[kAtATime];
      OffsetsOf(operand, first, offsets);
      ANYDML_UNROLL
      for (uint32_t i = 0; i < kAtATime; ++i) {
        if ((valid_ >> (first + i) & 1) != 0) f(first + i, offsets[i]);
      }
    }
  }

  ANYDML_LANE void CopyGroup(std::byte* to, const std::byte* from, uint32_t element_bytes) const {
    const uint32_t bytes = element_bytes << m_.log2_group;
    if (bytes >= 4) {
      StartCopy(to, from, bytes);
    } else {
      *reinterpret_cast<uint16_t*>(to) = *reinterpret_cast<const uint16_t*>(from);
    }
  }

  template <typename T>
  ANYDML_LANE void LoadSingles(const MachineOperand& operand, std::byte* slot) const {
    const T* const data = reinterpret_cast<const T*>(operand.data);
    uint64_t offsets[kElements];
    OffsetsOf(operand, 0, offsets);
    Pack<T, kElements> pack;
    ANYDML_UNROLL
    for (uint32_t e = 0; e < kElements; ++e) {
      pack.elements[e] = (valid_ >> e & 1) != 0 ? data[offsets[e]] : T{0};
    }
    WriteSlot(slot, pack);
  }

  // For one or two groups.
  template <typename T>
  ANYDML_LANE void LoadRepeated(const MachineOperand& operand, std::byte* slot) const {
    const T* const data = reinterpret_cast<const T*>(operand.data);
    constexpr uint32_t kHalf = kElements / 2;
    const T first = (valid_ & 1) != 0 ? data[OffsetOf(operand, 0)] : T{0};
    T second = first;
    if (GroupMask() + 1 == kHalf && (valid_ >> kHalf & 1) != 0) second = data[OffsetOf(operand, kHalf)];
    Pack<T, kElements> pack;
    ANYDML_UNROLL
    for (uint32_t e = 0; e < kElements; ++e) pack.elements[e] = e < kHalf ? first : second;
    WriteSlot(slot, pack);
  }

  // Neighbouring threads have neighbouring rows.
  template <typename T>
  ANYDML_LANE void LoadTile(const MachineOperand& operand, std::byte* slot) const {
    const T* const data = reinterpret_cast<const T*>(operand.data) + OffsetInTile(operand, 0, 0);
    const uint64_t row_stride = operand.strides[m_.rank - 2], column_stride = operand.strides[m_.rank - 1];
    T elements[kElements];
    ANYDML_UNROLL
    for (uint32_t i = 0; i < kElements; ++i) {
      const uint32_t number = i * kThreads + thread_;
      const uint32_t row = number & ((1u << m_.log2_rows) - 1), column = number >> m_.log2_rows;
      elements[i] = IsInTensor(row, column) ? data[row * row_stride + column * column_stride] : T{0};
    }
    ANYDML_UNROLL
    for (uint32_t i = 0; i < kElements; ++i) {
      const uint32_t number = i * kThreads + thread_;
      const uint32_t row = number & ((1u << m_.log2_rows) - 1), column = number >> m_.log2_rows;
      reinterpret_cast<T*>(slot)[PaddedPlace(row, column)] = elements[i];
    }
  }

  // Expands to bytes.
  ANYDML_LANE void Load4Bits(const MachineOperand& operand, std::byte* slot) const {
    const bool is_signed = operand.type == DataType::kInt4;
    const auto* const data = reinterpret_cast<const uint8_t*>(operand.data);
    Pack<uint8_t, kElements> pack;
    if (operand.access == Access::kVector && whole_groups_) {
      const Pack<uint8_t, kElements / 2> bytes = LoadBytesOfGroups(operand);
      ANYDML_UNROLL
      for (uint32_t e = 0; e < kElements; ++e) {
        pack.elements[e] = static_cast<uint8_t>(Get4Bits(bytes.elements[e / 2], e % 2 != 0, is_signed));
      }
    } else {
      uint64_t offsets[kElements];
      OffsetsOf(operand, 0, offsets);
      ANYDML_UNROLL
      for (uint32_t e = 0; e < kElements; ++e) {
        const uint8_t byte = (valid_ >> e & 1) != 0 ? data[offsets[e] / 2] : uint8_t{0};
        pack.elements[e] = static_cast<uint8_t>(Get4Bits(byte, (offsets[e] & 1) != 0, is_signed));
      }
    }
    WriteSlot(slot, pack);
  }

  // 4-bit elements of one or two groups.
  ANYDML_LANE Pack<uint8_t, kElements / 2> LoadBytesOfGroups(const MachineOperand& operand) const {
    constexpr uint32_t kHalf = kElements / 2;
    Pack<uint8_t, kElements / 2> all = {};
    if (GroupMask() + 1 == kElements) {
      if ((valid_ & 1) != 0) Read(operand.data + OffsetOf(operand, 0) / 2, &all);
      return all;
    }
    Pack<uint8_t, kHalf / 2> low = {}, high = {};
    if ((valid_ & 1) != 0) Read(operand.data + OffsetOf(operand, 0) / 2, &low);
    if ((valid_ >> kHalf & 1) != 0) Read(operand.data + OffsetOf(operand, kHalf) / 2, &high);
    ANYDML_UNROLL
    for (uint32_t i = 0; i < kHalf / 2; ++i) {
      all.elements[i] = low.elements[i];
      all.elements[kHalf / 2 + i] = high.elements[i];
    }
    return all;
  }

  // For one or two groups. `per_item`: elements of the tensor per item of the pack.
  template <typename T, uint32_t kItems>
  ANYDML_LANE void StoreGroups(const MachineOperand& operand, const Pack<T, kItems>& pack,
                               uint32_t per_item = 1) const {
    constexpr uint32_t kHalf = kElements / 2;
    T* const data = reinterpret_cast<T*>(operand.data);
    const auto at = [&](uint32_t e) {
      return reinterpret_cast<std::byte*>(data + OffsetOf(operand, e) / per_item);
    };
    if (GroupMask() + 1 == kHalf) {
      if ((valid_ & 1) != 0) Write(at(0), PartOf<0, 2>(pack));
      if ((valid_ >> kHalf & 1) != 0) Write(at(kHalf), PartOf<1, 2>(pack));
    } else if constexpr (sizeof(pack) <= sizeof(uint4)) {
      if ((valid_ & 1) != 0) Write(at(0), pack);
    }
  }

  const Machine& m_;
  std::byte* const shared_;
  const uint32_t thread_;
  uint64_t begin_ = 0;  // the block's first element
  // Of a tile.
  uint32_t outer_ = 0;
  uint32_t first_row_ = 0;
  uint32_t first_column_ = 0;

  uint32_t valid_ = (1u << kElements) - 1;  // a bit for each element that exists
  bool whole_groups_ = true;
};

}  // namespace anydml::element_cuda
