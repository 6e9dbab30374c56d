# Compiles programs with -fsyntax-only and fails on any error or warning.
#
#   cmake -DCOMPILER=g++ -DSTANDARDS=14,17 -DINCLUDE_DIRS=a:b -DSOURCE_DIR=dir
#         -DMODE=programs|orders|extensions -DWORK_DIR=dir -P check_compile.cmake
#
# MODE=programs: each *_style.cc unchanged. MODE=orders: each public header first, followed by all others.
# MODE=extensions: microsoft_extensions.cc with -fms-extensions, which only clang supports.

string(REPLACE ":" ";" include_dirs "${INCLUDE_DIRS}")
string(REPLACE "," ";" standards "${STANDARDS}")
list(TRANSFORM include_dirs PREPEND -I)
set(failures 0)

function(check name source standard)
  # clang would move /usr/include forward if given -I/usr/include; both compilers search it last by default.
  list(REMOVE_ITEM include_dirs -I/usr/include)
  execute_process(
    COMMAND ${COMPILER} -std=c++${standard} -Wall -Wextra -Werror -fsyntax-only
            ${extra_flags} ${include_dirs} ${source}
    RESULT_VARIABLE result
    ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message("FAILED: ${COMPILER} -std=c++${standard}: ${name}\n${errors}")
    math(EXPR failures "${failures} + 1")
    set(failures ${failures} PARENT_SCOPE)
  endif()
endfunction()

if(MODE STREQUAL "programs")
  file(GLOB programs ${SOURCE_DIR}/*_style.cc)
  foreach(standard IN LISTS standards)
    foreach(program IN LISTS programs)
      check(${program} ${program} ${standard})
    endforeach()
  endforeach()
elseif(MODE STREQUAL "extensions")
  set(extra_flags -fms-extensions)
  foreach(standard IN LISTS standards)
    check(microsoft_extensions.cc ${SOURCE_DIR}/microsoft_extensions.cc ${standard})
  endforeach()
else()
  set(headers DirectML.h d3d12.h directx/d3d12.h wsl/winadapter.h
      dxguids/dxguids.h directx/dxcore.h dxcore.h wrl/client.h d3dx12.h
      dxgi1_6.h windows.h guiddef.h unknwn.h unknwnbase.h basetsd.h
      rpcndr.h wsl/wrladapter.h)
  foreach(standard IN LISTS standards)
    foreach(first IN LISTS headers)
      set(text "#include <${first}>\n")
      foreach(header IN LISTS headers)
        string(APPEND text "#include <${header}>\n")
      endforeach()
      string(APPEND text "#include \"${SOURCE_DIR}/include_order_body.h\"\n")
      set(file ${WORK_DIR}/include_order_${standard}.cc)
      file(WRITE ${file} "${text}")
      check("${first} first" ${file} ${standard})
    endforeach()
  endforeach()
endif()

if(failures GREATER 0)
  message(FATAL_ERROR "${failures} programs do not compile")
endif()
