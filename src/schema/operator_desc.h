// An operator description, copied from the caller's C structs, on which validation, lowering and the tools
// work. Holds no pointer into the caller's memory.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schema/schema.h"
#include "schema/tensor_desc.h"

namespace anydml {

struct ScaleBias {
  float scale;
  float bias;
};

struct Size2D {
  uint32_t width;
  uint32_t height;
};

struct Scalar {  // DML_SCALAR_UNION
  std::array<uint8_t, 8> bytes;
};

struct OperatorDesc;

// An alternative that no value ever has. If libstdc++ 12 knows all alternatives to move without failing, it
// assumes that a variant is never valueless, and after a copy that ran out of memory it destroys an object
// that does not exist. It does not know that of this type.
struct NeverHeld {
  NeverHeld() = delete;
  NeverHeld(const NeverHeld&) noexcept {}
  NeverHeld& operator=(const NeverHeld&) noexcept { return *this; }
  ~NeverHeld() = default;
};

// monostate: an optional field that is absent. uint32_t: kUInt, kBool and kEnum.
using FieldValue =
    std::variant<std::monostate, TensorDesc, std::vector<TensorDesc>, uint32_t, int32_t, float,
                 std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, ScaleBias, Size2D, Scalar,
                 std::shared_ptr<const OperatorDesc>, std::vector<OperatorDesc>, NeverHeld>;

struct OperatorDesc {
  const OperatorSchema* schema = nullptr;
  std::vector<FieldValue> fields;  // one per schema field

  // Null if the (optional) tensor is absent. A field that the operator does not have, or that has another
  // type, is a programming error.
  const TensorDesc* tensor(std::string_view name) const;
  uint32_t uint(std::string_view name) const;
  const ScaleBias* scale_bias(std::string_view name) const;

  // Tensors in binding order, arrays expanded; null for absent optional ones.
  std::vector<const TensorDesc*> inputs() const;
  std::vector<const TensorDesc*> outputs() const;
};

struct NamedTensor {
  std::string name;          // "IndicesTensor", "InputTensors[2]"
  const TensorDesc* tensor;  // null: absent; points into the description
};

// inputs() or outputs(), with names.
std::vector<NamedTensor> NamedTensors(const OperatorDesc& desc, FieldKind kind);

}  // namespace anydml
