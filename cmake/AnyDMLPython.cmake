# The Python package: ANYDML_HAVE_PYTHON says whether it is built, for Python_EXECUTABLE. It needs an
# interpreter with NumPy and its headers (Debian: python3-dev, python3-numpy), and pybind11 (pybind11-dev).
set(ANYDML_PYTHON AUTO CACHE STRING "Build the Python package: ON, OFF, or AUTO (when what it needs is there)")
set(ANYDML_PYTHON_EXECUTABLE "" CACHE FILEPATH
    "The interpreter that the package is for; empty: the first with NumPy of python3 and /usr/bin/python3")
set(ANYDML_PYBIND11 "" CACHE PATH
    "Include folder of pybind11 (PyTorch has one inside, torch/include); empty: the system's")
set(ANYDML_PYTHON_DIR "" CACHE PATH
    "Where cmake --install puts the package, below the prefix; empty: where the interpreter looks, if it does there")
set(ANYDML_HAVE_PYTHON OFF)

# Sets `interpreter` to the one that was named, or to the first that can import NumPy, or to "".
function(anydml_find_interpreter interpreter)
  set(${interpreter} "${ANYDML_PYTHON_EXECUTABLE}" PARENT_SCOPE)
  if(ANYDML_PYTHON_EXECUTABLE)
    return()
  endif()
  find_program(python3 python3 NO_CACHE)
  foreach(candidate ${python3} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(result EQUAL 0)
      set(${interpreter} ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Sets `folder` to the folder below the prefix in which Python_EXECUTABLE looks for packages.
function(anydml_find_package_folder folder)
  execute_process(OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND ${Python_EXECUTABLE} -c "
import os, site, sys, sysconfig
folders = [os.path.relpath(path, sys.argv[1]) for path in site.getsitepackages()]
folders.append(sysconfig.get_path('platlib', 'posix_prefix', {'base': '', 'platbase': ''}).lstrip('/'))
print(next(path for path in folders if path.startswith('lib')))" ${CMAKE_INSTALL_PREFIX})
  set(${folder} ${found} PARENT_SCOPE)
endfunction()

if(ANYDML_PYTHON STREQUAL "AUTO" AND ANYDML_SANITIZE)
  message(STATUS "AnyDML: no Python package with sanitizers (the interpreter is built without them)")
elseif(ANYDML_PYTHON)
  set(why_not "")
  find_path(pybind11_folder pybind11/pybind11.h HINTS "${ANYDML_PYBIND11}" NO_CACHE)
  anydml_find_interpreter(Python_EXECUTABLE)
  if(NOT Python_EXECUTABLE)
    set(why_not "no interpreter has NumPy (Debian: python3-numpy)")
  else()
    find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
    if(NOT Python_FOUND)
      set(why_not "${Python_EXECUTABLE} is older than 3.9 or has no headers (Debian: python3-dev)")
    elseif(NOT pybind11_folder)
      set(why_not "pybind11 not found (Debian: pybind11-dev; or ANYDML_PYBIND11=DIR)")
    endif()
  endif()
  if(NOT why_not)
    set(ANYDML_HAVE_PYTHON ON)
    if(NOT ANYDML_PYTHON_DIR)
      anydml_find_package_folder(ANYDML_PYTHON_DIR)
    endif()
  elseif(ANYDML_PYTHON STREQUAL "AUTO")
    message(STATUS "AnyDML: no Python package, ${why_not}")
  else()
    message(FATAL_ERROR "ANYDML_PYTHON is ON, but ${why_not}")
  endif()
endif()
