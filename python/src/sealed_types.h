// What Python may do with the module's classes beyond what they offer.
#pragma once

#include <type_traits>
#include <utility>

#include "status.h"

namespace anydml::python {

// Objects of the module come from its functions, which make them whole. pybind11 alone would also let
// `__new__` and `pickle` make objects with nothing in them, and `__class__` turn one into another: their
// methods then end the process. After this all of that is a TypeError, for every class that is defined so
// far. Without memory for an object its making throws, where pybind11 would go on with a null pointer, or
// delete what a shared_ptr holds: all classes have such holders.
void SealTypes();

// A method for pybind11, which would call it on a null pointer when Python calls it on None.
template <typename T, typename Result, typename... Arguments>
auto OnObject(Result (T::*method)(Arguments...)) {
  return [method](T& object, Arguments... arguments) {
    if constexpr (std::is_void_v<Result>) {
      (object.*method)(std::forward<Arguments>(arguments)...);
    } else {
      return ToPython((object.*method)(std::forward<Arguments>(arguments)...));
    }
  };
}
template <typename T, typename Result, typename... Arguments>
auto OnObject(Result (T::*method)(Arguments...) const) {
  return [method](const T& object, Arguments... arguments) {
    return ToPython((object.*method)(std::forward<Arguments>(arguments)...));
  };
}

}  // namespace anydml::python
