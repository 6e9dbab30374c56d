// Restricts what Python can do with the module's classes to what they offer.
#pragma once

#include <type_traits>
#include <utility>

#include "status.h"

namespace anydml::python {

// The module's functions create its objects completely. pybind11 alone would also let `__new__` and `pickle`
// create empty objects, and `__class__` turn one into another: calling their methods would then crash the
// process. After this call, all of that raises a TypeError, for every class defined so far. If there is no
// memory for an object, creating it throws; pybind11 would continue with a null pointer, or delete an object
// that a shared_ptr owns (all classes have such holders).
void SealTypes();

// A method for pybind11 that refuses None: pybind11 would call it on a null pointer.
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
