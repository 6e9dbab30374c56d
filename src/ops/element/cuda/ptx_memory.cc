#include "ops/element/cuda/ptx_memory.h"

#include <algorithm>
#include <bit>

namespace anydml::element_cuda {
namespace {

constexpr uint32_t kBlockElements = kThreads * kPtxElements;
constexpr uint64_t kMaxImmediate = 0x7FFFFFFF;

// The registers of a vector access, and its type.
std::string Vector(std::span<const std::string> words) {
  if (words.size() == 1) return words[0];
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "{" : ", ") + word;
  return text + "}";
}
std::string VectorType(size_t words) { return words == 1 ? ".b32" : ".v" + std::to_string(words) + ".b32"; }

const char* ElementType(uint32_t bytes) { return bytes == 4 ? ".b32" : bytes == 2 ? ".u16" : ".u8"; }

}  // namespace

PtxMemory::PtxMemory(const MachinePlan& plan, PtxWriter* writer)
    : machine_(plan.machine), operands_(plan.operands), w_(*writer), group_(1u << machine_.log2_group) {}

std::string PtxMemory::Parameters() const {
  std::string text;
  for (uint32_t o = 0; o < operands_; ++o) text += ".param .u64 operand" + std::to_string(o) + ", ";
  return text + ".param .u64 elements, .param .u32 aligned";
}

bool PtxMemory::IsUniform(uint32_t operand) const {
  const auto& strides = machine_.operands[operand].strides;
  return std::all_of(strides, strides + machine_.rank, [](uint64_t s) { return s == 0; });
}

// Computes where the thread's groups begin, and whether the block is full and groups may move at once.
void PtxMemory::WritePlace() {
  const std::string block = w_.Word(), thread = w_.Word(), aligned = w_.Word();
  const std::string begin = w_.Long(), end = w_.Long();
  elements_ = w_.Long();
  w_.Line("mov.u32 ", block, ", %ctaid.x");
  w_.Line("mov.u32 ", thread, ", %tid.x");
  w_.Line("ld.param.u64 ", elements_, ", [elements]");
  w_.Line("ld.param.u32 ", aligned, ", [aligned]");
  w_.Line("mul.wide.u32 ", begin, ", ", block, ", ", uint64_t{kBlockElements});
  w_.Line("add.u64 ", end, ", ", begin, ", ", uint64_t{kBlockElements});
  const std::string is_aligned = w_.Predicate();
  inside_ = w_.Predicate();
  w_.Line("setp.ne.u32 ", is_aligned, ", ", aligned, ", 0");
  w_.Line("setp.le.and.u64 ", inside_, ", ", end, ", ", elements_, ", ", is_aligned);
  for (uint32_t g = 0; g < groups(); ++g) {
    indices_.push_back(w_.Long());
    if (g == 0) {
      w_.Line("mad.wide.u32 ", indices_[0], ", ", thread, ", ", uint64_t{group_}, ", ", begin);
    } else {
      w_.Line("add.u64 ", indices_[g], ", ", indices_[0], ", ", uint64_t{g} * kThreads * group_);
    }
  }
}

// The coordinates of an element, from its index.
std::vector<std::string> PtxMemory::Coordinates(const std::string& index) {
  std::vector<std::string> coordinates(machine_.rank);
  std::string rest = w_.Word();
  w_.Line("cvt.u32.u64 ", rest, ", ", index);
  for (uint32_t d = machine_.rank; d-- > 0;) {
    coordinates[d] = rest;
    if (d == 0) break;
    const uint32_t size = machine_.sizes[d].divisor();
    const std::string quotient = w_.Word(), remainder = w_.Word();
    if (std::has_single_bit(size)) {
      w_.Line("shr.u32 ", quotient, ", ", rest, ", ", uint64_t(std::bit_width(size) - 1));
      w_.Line("and.b32 ", remainder, ", ", rest, ", ", uint64_t{size - 1});
    } else {
      // The same arithmetic as FastDivisor.
      const uint32_t shift = static_cast<uint32_t>(std::bit_width(size - 1));
      const uint64_t magic = (((uint64_t{1} << shift) - size) << 32) / size + 1;
      const std::string high = w_.Word(), product = w_.Word(), sum = w_.Long(), number = w_.Long();
      w_.Line("mul.hi.u32 ", high, ", ", rest, ", ", magic);
      w_.Line("cvt.u64.u32 ", sum, ", ", high);
      w_.Line("cvt.u64.u32 ", number, ", ", rest);
      w_.Line("add.u64 ", sum, ", ", sum, ", ", number);
      w_.Line("shr.u64 ", sum, ", ", sum, ", ", uint64_t{shift});
      w_.Line("cvt.u32.u64 ", quotient, ", ", sum);
      w_.Line("mul.lo.u32 ", product, ", ", quotient, ", ", uint64_t{size});
      w_.Line("sub.u32 ", remainder, ", ", rest, ", ", product);
    }
    coordinates[d] = remainder;
    rest = quotient;
  }
  return coordinates;
}

void PtxMemory::WriteAddresses() {
  std::vector<std::string> bases;
  bool any_by_coordinates = false;
  for (uint32_t o = 0; o < operands_; ++o) {
    const std::string generic = w_.Long();
    bases.push_back(w_.Long());
    w_.Line("ld.param.u64 ", generic, ", [operand", uint64_t{o}, "]");
    w_.Line("cvta.to.global.u64 ", bases[o], ", ", generic);
    any_by_coordinates = any_by_coordinates || (!machine_.operands[o].in_order && !IsUniform(o));
  }
  addresses_.resize(operands_);
  for (uint32_t g = 0; g < groups(); ++g) {
    std::vector<std::string> coordinates;
    if (any_by_coordinates) coordinates = Coordinates(indices_[g]);
    for (uint32_t o = 0; o < operands_; ++o) {
      const MachineOperand& operand = machine_.operands[o];
      if (IsUniform(o)) {
        addresses_[o][g] = bases[o];
        continue;
      }
      std::string offset = indices_[g];
      if (!operand.in_order) {
        offset = w_.Long();
        w_.Line("mov.u64 ", offset, ", 0");
        for (uint32_t d = 0; d < machine_.rank; ++d) {
          if (operand.strides[d] == 0) continue;
          const std::string coordinate = w_.Long();
          w_.Line("cvt.u64.u32 ", coordinate, ", ", coordinates[d]);
          w_.Line("mad.lo.u64 ", offset, ", ", coordinate, ", ", operand.strides[d], ", ", offset);
        }
      }
      addresses_[o][g] = w_.Long();
      w_.Line("mad.lo.u64 ", addresses_[o][g], ", ", offset, ", ", uint64_t{BytesOf(o)}, ", ", bases[o]);
    }
  }
}

void PtxMemory::WritePredicates() {
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    const std::string index = w_.Long();
    there_[e] = w_.Predicate();
    w_.Line("add.u64 ", index, ", ", indices_[e / group_], ", ", uint64_t{e % group_});
    w_.Line("setp.lt.u64 ", there_[e], ", ", index, ", ", elements_);
  }
}

std::string PtxMemory::At(uint32_t operand, uint32_t e) {
  const uint64_t stride = machine_.rank == 0 ? 0 : machine_.operands[operand].strides[machine_.rank - 1];
  const uint64_t bytes = e % group_ * stride * BytesOf(operand);
  std::string address = addresses_[operand][e / group_];
  if (bytes == 0) return "[" + address + "]";
  if (bytes <= kMaxImmediate) return "[" + address + "+" + std::to_string(bytes) + "]";
  const std::string sum = w_.Long();
  w_.Line("add.u64 ", sum, ", ", address, ", ", bytes);
  return "[" + sum + "]";
}

// The registers that both variants of loading an input fill.
void PtxMemory::PlaceInput(uint32_t input) {
  const bool is_uniform = IsUniform(input),
             is_repeated = machine_.operands[input].access == Access::kRepeated;
  const uint32_t per_word = IsVector(input) ? 4 / BytesOf(input) : 1;
  PtxElements& elements = inputs_.emplace_back();
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    const uint32_t first = is_uniform ? 0 : is_repeated ? e / group_ * group_ : e / per_word * per_word;
    auto& place = elements.places[e];
    place.word = first == e ? w_.Word() : elements.places[first].word;
    place.shift = (e - first) * (is_uniform || is_repeated ? 0 : machine_.operands[input].bits);
  }
}

void PtxMemory::LoadInput(uint32_t input, bool guarded) {
  const auto& places = inputs_[input].places;
  const char* const type = ElementType(BytesOf(input));
  if (IsVector(input) && !IsUniform(input) && !guarded) {
    const uint32_t per_word = 4 / BytesOf(input);
    const char* const once = machine_.operands[input].in_order ? ".cs" : "";
    for (uint32_t first = 0; first < kPtxElements; first += group_) {
      std::vector<std::string> words;
      for (uint32_t e = first; e < first + group_; e += per_word) words.push_back(places[e].word);
      w_.Line("ld.global", once, VectorType(words.size()), " ", Vector(words), ", ", At(input, first));
    }
    return;
  }
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    const auto& place = places[e];
    if (e > 0 && place == places[e - 1]) continue;
    if (place.shift == 0) {
      if (guarded) w_.Line("mov.b32 ", place.word, ", 0");
      w_.Line(Guard(e, guarded), "ld.global", type, " ", place.word, ", ", At(input, e));
      continue;
    }
    const std::string element = w_.Constant(0);
    w_.Line(Guard(e, guarded), "ld.global", type, " ", element, ", ", At(input, e));
    w_.Line("shl.b32 ", element, ", ", element, ", ", uint64_t{place.shift});
    w_.Line("or.b32 ", place.word, ", ", place.word, ", ", element);
  }
}

void PtxMemory::WriteLoads() {
  WritePlace();
  WriteAddresses();
  for (uint32_t i = 0; i < machine_.inputs; ++i) PlaceInput(i);
  WritePredicates();
  w_.Line("@!", inside_, " bra $one_by_one");
  for (uint32_t i = 0; i < machine_.inputs; ++i) LoadInput(i, false);
  w_.Line("bra $loaded");
  w_.Label("$one_by_one");
  for (uint32_t i = 0; i < machine_.inputs; ++i) LoadInput(i, true);
  w_.Label("$loaded");
}

void PtxMemory::StoreOutput(const Store& store, bool guarded) {
  const uint32_t bytes = BytesOf(store.operand), per_word = 4 / bytes;
  if (IsVector(store.operand) && !guarded) {
    for (uint32_t first = 0; first < kPtxElements; first += group_) {
      const std::span<const std::string> words(store.words.data() + first / per_word, group_ / per_word);
      w_.Line("st.global", VectorType(words.size()), " ", At(store.operand, first), ", ", Vector(words));
    }
    return;
  }
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    std::string element = store.words[e / per_word];
    if (e % per_word != 0) {
      const std::string shifted = w_.Word();
      w_.Line("shr.u32 ", shifted, ", ", element, ", ", uint64_t{e % per_word * bytes * 8});
      element = shifted;
    }
    w_.Line(Guard(e, guarded), "st.global", ElementType(bytes), " ", At(store.operand, e), ", ", element);
  }
}

void PtxMemory::WriteStores() {
  w_.Line("@!", inside_, " bra $store_one_by_one");
  for (const Store& store : stores_) StoreOutput(store, false);
  w_.Line("ret");
  w_.Label("$store_one_by_one");
  for (const Store& store : stores_) StoreOutput(store, true);
  w_.Line("ret");
}

}  // namespace anydml::element_cuda
