# hwy::hwy, if installed; only the vectorised kernels need it.
if(NOT ANYDML_SIMD)
  message(STATUS "AnyDML: no SIMD kernels, ANYDML_SIMD is off")
  return()
endif()
if(ANYDML_HIGHWAY)
  foreach(option HWY_ENABLE_TESTS HWY_ENABLE_EXAMPLES HWY_ENABLE_CONTRIB HWY_ENABLE_INSTALL)
    set(${option} OFF CACHE INTERNAL "")
  endforeach()
  set(HWY_FORCE_STATIC_LIBS ON CACHE INTERNAL "")
  add_subdirectory(${ANYDML_HIGHWAY} ${PROJECT_BINARY_DIR}/highway EXCLUDE_FROM_ALL)
  if(NOT TARGET hwy::hwy)
    add_library(hwy::hwy ALIAS hwy)
  endif()
else()
  find_package(hwy CONFIG QUIET)
endif()
if(NOT TARGET hwy::hwy)
  message(STATUS "AnyDML: no SIMD kernels, Highway not found (Debian: libhwy-dev; or ANYDML_HIGHWAY=DIR)")
endif()

# Targets that are not worth their compile time. Arm's processors have SVE of 256 bits or SVE2 of 128, for
# which Highway has special targets; those for any length would be two of five to compile. On longer vectors,
# NEON is used. x86 processors with SSSE3 but no more are from 2006 to 2009; they use SSE2. Our loops do not
# use what AVX3_DL adds to AVX3 (byte products have files of their own).
if(NOT ANYDML_SANITIZE AND NOT CMAKE_CXX_FLAGS MATCHES HWY_DISABLED_TARGETS)
  set(disabled_targets "HWY_SVE|HWY_SVE2")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(disabled_targets "HWY_SSSE3|HWY_AVX3_DL")
  endif()
  add_compile_definitions("$<$<COMPILE_LANGUAGE:CXX>:HWY_DISABLED_TARGETS=(${disabled_targets})>")
endif()
