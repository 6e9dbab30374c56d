# anydml_add_test(name SOURCES a.cc b.cc LIBS target... [LABELS label...] [TIMEOUT seconds] [GPU | ONLY_GPU])
# A GoogleTest executable that is one CTest test, on the CPU. GPU: and once more, as gpu_<name>, on
# the first GPU; skipped where there is none. ONLY_GPU: there alone. The target <label>_tests builds all tests
# with that label.
if(ANYDML_BUILD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  # Tests take longer to compile than to run; with sanitizers, optimising them takes as long again.
  set(test_options $<$<CONFIG:Release>:-O1>)
  if(ANYDML_SANITIZE)
    set(test_options $<$<CONFIG:Release>:-O0>)
  endif()
  if(ANYDML_SANITIZE MATCHES undefined)
    # Only the code under test is checked: instrumenting the tests would make compiling them half as long
    # again, and they pass wrong values on purpose.
    list(APPEND test_options -fno-sanitize=undefined)
  endif()
  if(ANYDML_FUZZ)  # to follow the tests' own branches took half of the fuzzers' time
    list(APPEND test_options -fno-sanitize=fuzzer-no-link)
  endif()
  # Reading GoogleTest and the standard library is a third of compiling a test, so they are precompiled. A
  # precompiled header belongs to one set of flags, here an executable's: targets with other flags go without
  # (DISABLE_PRECOMPILE_HEADERS), and so do the tests of headers.
  add_library(test_headers OBJECT ${PROJECT_SOURCE_DIR}/tests/support/precompiled.cc)
  set_target_properties(test_headers PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(test_headers PRIVATE ${test_options} ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_link_libraries(test_headers PRIVATE GTest::gtest_main Threads::Threads)
  target_precompile_headers(test_headers PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/precompiled.h)
endif()

# anydml_compile_as_test(target): for a library of helpers that only tests and fuzzers use.
function(anydml_compile_as_test target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${test_options} ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  target_precompile_headers(${target} REUSE_FROM test_headers)
endfunction()

# anydml_add_gpu_test(name target timeout [argument...]): gpu_<name> runs the target on the first GPU.
function(anydml_add_gpu_test name target timeout)
  if(ANYDML_BUILD_TESTS AND ANYDML_HAVE_CUDA)
    add_test(NAME gpu_${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/support/on_gpu.sh $<TARGET_FILE:anydml-cli>
                                      $<TARGET_FILE:${target}> ${ARGN})
    set_tests_properties(gpu_${name} PROPERTIES TIMEOUT ${timeout} LABELS gpu SKIP_RETURN_CODE 77
                         RUN_SERIAL ON)
  endif()
endfunction()

function(anydml_add_test name)
  cmake_parse_arguments(ARG "GPU;ONLY_GPU" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT ANYDML_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest_main Threads::Threads)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${test_options})
  target_precompile_headers(${name} REUSE_FROM test_headers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(ARG_GPU OR ARG_ONLY_GPU)
    anydml_add_gpu_test(${name} ${name} ${ARG_TIMEOUT})
  endif()
  if(ARG_ONLY_GPU)
    return()
  endif()
  foreach(label ${ARG_LABELS})
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${name})
  endforeach()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "ANYDML_ADAPTER=cpu;ANYDML_TEST_BACKEND=cpu")
endfunction()

# anydml_add_no_simd_test(name [SOURCES a.cc...] LIBS target...): no_simd_<name> is the test of that name, or
# of these sources, with other libraries. The target no_simd_tests builds them; all does not.
function(anydml_add_no_simd_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES $<TARGET_OBJECTS:${name}>)
  endif()
  set(target no_simd_${name})
  add_executable(${target} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gtest_main Threads::Threads)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE ${test_options} -ffp-contract=off)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin LINKER_LANGUAGE CXX)
  if(NOT TARGET no_simd_tests)
    add_custom_target(no_simd_tests)
  endif()
  add_dependencies(no_simd_tests ${target})
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES TIMEOUT 600 LABELS no-simd
                       ENVIRONMENT "ANYDML_ADAPTER=cpu;ANYDML_TEST_BACKEND=cpu")
endfunction()
