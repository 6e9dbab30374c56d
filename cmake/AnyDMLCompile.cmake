# Compiler settings for everything of ours; never exported to users.
find_package(Threads REQUIRED)

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(ANYDML_WERROR)
  add_compile_options(-Werror)
endif()

if(ANYDML_SANITIZE)
  add_compile_options(-fsanitize=${ANYDML_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ANYDML_SANITIZE})
  if(NOT ANYDML_FUZZ)
    # Compiling takes longer than running: fewer of Highway's targets (the release build tests all of them).
    add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")
  endif()
  if(ANYDML_SANITIZE MATCHES undefined)
    # A finding fails the test instead of scrolling by.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

if(ANYDML_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "ANYDML_FUZZ needs clang: libFuzzer is a part of it")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Where an installed program or library looks for others: the same in the build tree, which is laid out
# accordingly. CMake would otherwise keep room for the installed path with empty elements, which mean the
# working directory.
function(anydml_set_runpath target path)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${path}")
endfunction()

# Hardening (tests/install/hardening_test.sh checks the outcome). Sanitizers bring checks of their own.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT ANYDML_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
  # Needs optimization; a compiler may define it by itself.
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
endif()
