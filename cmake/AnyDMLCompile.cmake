# Compiler settings for our own targets; never exported to users.
find_package(Threads REQUIRED)

# To cache files with precompiled headers, ccache must be told to ignore macros defined before the header and
# the header's time (sloppiness); GCC's preprocessed output must name the header, and clang's header must not
# contain a time. Files that are compiled together are cached together: a clean build in the same folder finds
# them again.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
  foreach(language C CXX CUDA)
    set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
  endforeach()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  else()
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()
set(ANYDML_UNITY ON CACHE STRING "Compile small files several at a time, which takes half as long: ON, OFF, or \
ALL (the operators, too, which are faster if each file is optimized for itself; not with CUDA, whose module has some\
 of their files)")

# anydml_compile_together(target COUNT [source...]): compiles COUNT files at a time, except these sources,
# which share names with others. Every file still includes what it uses: the step tsan compiles each
# separately.
function(anydml_compile_together target count)
  if(ANYDML_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count}
                          UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(ANYDML_WERROR)
  add_compile_options(-Werror)
endif()

if(ANYDML_SANITIZE)
  add_compile_options(-fsanitize=${ANYDML_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ANYDML_SANITIZE})
  # Compiling takes longer than running, so there are fewer of Highway's targets (the release build tests
  # all). GCC 12 cannot compile SVE with ASan. clang needs minutes for a file of tiles for x86's baseline,
  # which Highway 1.0 emulates element by element, and seconds for AVX2, which the processors of CI and
  # developers have.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-march=haswell -maes -ffp-contract=off)
    add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
  else()
    add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
  endif()
  if(ANYDML_SANITIZE MATCHES undefined)
    # A finding fails the test.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

if(ANYDML_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "ANYDML_FUZZ needs clang: libFuzzer is a part of it")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# Where an installed program or library looks for libraries; the build folder has the same layout. Otherwise
# CMake would reserve room for the installed path by empty elements, which mean the working directory.
option(ANYDML_RUNPATH "Installed files look for their libraries from where they are, so that the folder can be moved; \
OFF: only where the system looks, for a distribution's packages" ON)
function(anydml_set_runpath target path)
  if(ANYDML_RUNPATH)
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${path}")
  endif()
endfunction()

# Where a library is installed in another folder than those it needs, links to them go with it: so it looks in its own
# folder alone, in every layout. `$ORIGIN/..` would be somebody else's folder in one of them.
function(anydml_install_links target folder component)
  if(NOT ANYDML_RUNPATH)
    return()
  endif()
  file(RELATIVE_PATH to_lib "/${folder}" "/${CMAKE_INSTALL_LIBDIR}")
  string(REGEX REPLACE "/$" "" to_lib "${to_lib}")
  foreach(library anydml directml d3d12 dxcore dxgi)
    install(CODE "if(EXISTS \"$<TARGET_FILE:${target}>\")
  set(link \"\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_SONAME_FILE_NAME:${library}>\")
  message(STATUS \"Installing: \$ENV{DESTDIR}\${link}\")
  file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
  file(CREATE_LINK \"${to_lib}/$<TARGET_SONAME_FILE_NAME:${library}>\" \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${link}\")
endif()" COMPONENT ${component})
  endforeach()
endfunction()

# Hardening (tests/install/hardening_test.sh checks the result). Sanitizers have their own checks.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT ANYDML_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)
  # Needs optimisation; a compiler may define it by default.
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
endif()
