// The places of a tensor's elements, and how a tensor within another tensor's elements is found again after a
// move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/element/problem.h"
#include "schema/tensor_desc.h"

namespace anydml {

// Loops over the bytes of a value, outermost first: each iteration is the begin of an element.
struct Places {
  struct Loop {
    uint64_t size = 1;
    int64_t stride = 0;  // in bytes; meaningless if the size is 1
  };
  std::vector<Loop> loops;
  int64_t offset = 0;          // of the first element, in bytes
  uint64_t element_bytes = 0;  // 0: smaller than a byte; such elements form no views
};

// Whether the elements are contiguous in the order of the dimensions.
bool IsPacked(const TensorDesc& tensor);

Places PlacesOf(const TensorDesc& tensor, uint64_t offset);
Places PlacesOf(const ElementProblem& problem, const ElementOperand& operand, uint64_t offset);

// Puts the tensor, which has the same loops, at these places; returns its offset. False if strides cannot
// express them.
bool SetPlaces(const Places& places, TensorDesc* tensor, uint64_t* offset);
bool SetPlaces(const Places& places, ElementOperand* operand, uint64_t* offset);

// The elements at `here` in one value are, in the same order, those at `there` in another value. Finds the
// place in the other value of the tensor at `user` in the first one, which may have other loops and elements.
// Empty if strides cannot express it, if it has bytes outside these elements, or if elements of `here`
// overlap.
std::optional<Places> Transfer(const Places& here, const Places& there, const Places& user);

}  // namespace anydml
