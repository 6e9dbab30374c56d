# anydml_add_test(name SOURCES a.cc b.cc LIBS target... [LABELS label...] [TIMEOUT seconds] [GPU | ONLY_GPU])
# A GoogleTest executable that is one CTest test, on the CPU. GPU: and once more, as gpu_<name>, on
# the first GPU; skipped where there is none. ONLY_GPU: there alone. The target <label>_tests builds all tests
# with that label.
if(ANYDML_BUILD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()

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
  # Tests take longer to compile than to run; with sanitizers, optimizing them takes as long again.
  set(optimize -O1)
  if(ANYDML_SANITIZE)
    set(optimize -O0)
  endif()
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${optimize}>)
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
