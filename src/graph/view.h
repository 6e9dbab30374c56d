// Where the elements of tensors lie, and how a tensor is found that lies in another tensor's elements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/element/problem.h"
#include "schema/tensor_desc.h"

namespace anydml {

// Loops over the bytes of a value, outermost first: an element begins wherever they come.
struct Places {
  struct Loop {
    uint64_t size = 1;
    int64_t stride = 0;  // in bytes; without meaning where the size is 1
  };
  std::vector<Loop> loops;
  int64_t offset = 0;          // of the first element, in bytes
  uint64_t element_bytes = 0;  // 0: less than a byte, which no view is made of
};

// Whether the elements are one after the other, in the order of the dimensions.
bool IsPacked(const TensorDesc& tensor);

Places PlacesOf(const TensorDesc& tensor, uint64_t offset);
Places PlacesOf(const ElementProblem& problem, const ElementOperand& operand, uint64_t offset);

// Puts the tensor, which has the same loops, there; the second value is the offset. False where strides of
// tensors cannot say it.
bool SetPlaces(const Places& places, TensorDesc* tensor, uint64_t* offset);
bool SetPlaces(const Places& places, ElementOperand* operand, uint64_t* offset);

// The elements at `here` of one value are those at `there` of another one, in the same order. Finds where in
// the other value the tensor at `user` of the first one lies, which may have other loops and elements. None
// where no strides say it, where it has bytes that are not of these elements, or where elements `here`
// overlap.
std::optional<Places> Transfer(const Places& here, const Places& there, const Places& user);

}  // namespace anydml
