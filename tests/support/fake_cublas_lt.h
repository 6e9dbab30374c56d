// A cuBLASLt that fails on request (fake_cublas_lt.cc), with the name of the real one. It is found through
// LD_LIBRARY_PATH.
#pragma once

#include <cublasLt.h>
#include <dlfcn.h>

namespace anydml::testing {

struct FakeCublasLt {
  enum class Fails { kNothing, kCreate, kDescribe, kFindAlgorithm, kHasNoAlgorithm, kMultiply };

  Fails fails = Fails::kNothing;
  int descriptions = 0;     // number of existing ones
  int multiplications = 0;  // number of calls

#ifdef ANYDML_FAKE_CUBLAS_LT
  // Opens it, so that later requests for a library of this name get it.
  static FakeCublasLt* Find() {
    void* const library = dlopen(ANYDML_FAKE_CUBLAS_LT, RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : static_cast<FakeCublasLt*>(dlsym(library, "anydml_fake_cublas_lt"));
  }
#endif
};

}  // namespace anydml::testing
