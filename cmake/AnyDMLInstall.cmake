# cmake --install: libraries, headers, tools, the CMake package DirectML, the pkg-config file directml and the
# Python package. Components: runtime, dev, tools, python, cuda, each without the others (debian/ makes a
# package of each), and nuget. Targets that were not built are skipped, so that `./dev demo` builds enough to
# install from.
include(CMakePackageConfigHelpers)

set(ANYDML_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(ANYDML_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/anydml)
set(ANYDML_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/DirectML)

# Programs open the façades by their unversioned names, as on Windows, so these are needed at run time, too.
install(TARGETS directml d3d12 dxcore dxgi LIBRARY DESTINATION ${ANYDML_LIBDIR} COMPONENT runtime)
install(TARGETS anydml LIBRARY DESTINATION ${ANYDML_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
if(ANYDML_HAVE_CUDA)
  # libanydml.so opens it (backend/module.cc) and nothing links it, so it is not in the linker's folder.
  install(TARGETS anydml_cuda LIBRARY DESTINATION ${ANYDML_LIBDIR}/anydml COMPONENT cuda OPTIONAL)
endif()
# A provider for onnxruntime, which opens it by its path; only if it was built.
install(TARGETS anydml_ort LIBRARY DESTINATION ${ANYDML_LIBDIR}/anydml COMPONENT runtime OPTIONAL)
anydml_install_links(anydml_ort ${ANYDML_LIBDIR}/anydml runtime)
install(DIRECTORY include/ DESTINATION ${ANYDML_INCLUDEDIR} COMPONENT dev)

# cmake --install BUILD --component nuget: the folders of Microsoft's DirectML package, for build scripts that
# use it. They add only include/ to the path, so the support headers are beside DirectML.h there.
set(nuget_platform x64-linux)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(nuget_platform arm64-linux)
endif()
set(nuget_component COMPONENT nuget EXCLUDE_FROM_ALL)
install(TARGETS anydml directml d3d12 dxcore dxgi LIBRARY DESTINATION bin/${nuget_platform} ${nuget_component})
if(ANYDML_HAVE_CUDA)
  install(TARGETS anydml_cuda LIBRARY DESTINATION bin/${nuget_platform} ${nuget_component} OPTIONAL)
endif()
install(DIRECTORY include/ DESTINATION include ${nuget_component} PATTERN support EXCLUDE)
install(DIRECTORY include/support/ DESTINATION include ${nuget_component})
install(FILES LICENSE DESTINATION . ${nuget_component})

file(RELATIVE_PATH bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${ANYDML_LIBDIR}")
anydml_set_runpath(anydml-cli "$ORIGIN/${bin_to_lib}")
install(TARGETS anydml-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
# That path also leads to the libraries in the build folder.
file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
get_filename_component(lib_link ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${bin_to_lib} ABSOLUTE)
get_filename_component(lib_link_folder ${lib_link} DIRECTORY)
string(FIND "${lib_link}" "${PROJECT_BINARY_DIR}/" in_build_tree)
if(ANYDML_RUNPATH AND NOT in_build_tree EQUAL 0)
  message(WARNING "AnyDML: with these install folders ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/anydml finds its libraries "
                  "only when it is installed")
elseif(ANYDML_RUNPATH AND NOT EXISTS ${lib_link})
  file(MAKE_DIRECTORY ${lib_link_folder})
  file(RELATIVE_PATH link_to_lib ${lib_link_folder} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  if(NOT link_to_lib)
    set(link_to_lib .)
  endif()
  file(CREATE_LINK ${link_to_lib} ${lib_link} SYMBOLIC)
endif()

configure_package_config_file(cmake/DirectMLConfig.cmake.in ${PROJECT_BINARY_DIR}/DirectMLConfig.cmake
  INSTALL_DESTINATION ${ANYDML_CMAKEDIR} PATH_VARS ANYDML_LIBDIR ANYDML_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/DirectMLConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/DirectMLConfig.cmake ${PROJECT_BINARY_DIR}/DirectMLConfigVersion.cmake
              cmake/FindDirectXHeaders.cmake DESTINATION ${ANYDML_CMAKEDIR} COMPONENT dev)

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_runpath "")
if(ANYDML_RUNPATH)
  set(pc_runpath " -Wl,-rpath,\${libdir}")
endif()
configure_file(cmake/directml.pc.in ${PROJECT_BINARY_DIR}/directml.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/directml.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# Tells the system about new libraries in its folders.
find_program(ldconfig ldconfig PATHS /usr/sbin /sbin NO_CACHE)
if(ldconfig)
  install(CODE "if(NOT DEFINED ENV{DESTDIR} AND CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?/?$\")
    execute_process(COMMAND ${ldconfig})
  endif()" COMPONENT runtime)
endif()

# anydml_say_if_missing(component file what [folder]): CMake creates the folder even for skipped files; it is
# removed if it is empty, because Python would take an empty folder for a package.
function(anydml_say_if_missing component file what)
  install(CODE "if(NOT EXISTS \"${file}\")
    message(STATUS \"AnyDML: left out, for it is not built: ${what}\")
    foreach(folder IN ITEMS ${ARGN})
      set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${folder}\")
      file(GLOB_RECURSE installed \"\${folder}/*\")
      if(NOT installed)
        file(REMOVE_RECURSE \"\${folder}\")
      endif()
    endforeach()
  endif()" COMPONENT ${component})
endfunction()
anydml_say_if_missing(runtime $<TARGET_FILE:anydml_ort> "the plugin for onnxruntime" ${ANYDML_LIBDIR}/anydml)
if(ANYDML_HAVE_CUDA)
  anydml_say_if_missing(cuda $<TARGET_FILE:anydml_cuda> "the CUDA module" ${ANYDML_LIBDIR}/anydml)
endif()
if(ANYDML_HAVE_PYTHON)
  anydml_say_if_missing(python $<TARGET_FILE:anydml_python> "the Python package" ${ANYDML_PYTHON_DIR}/anydml)
endif()
if(TARGET anydml-pages)
  anydml_say_if_missing(tools ${PROJECT_BINARY_DIR}/share/anydml.1 "the manual page and completions")
endif()

# What is installed, and the examples; without the tests, which would take as long again to compile.
add_custom_target(anydml-installed)
add_dependencies(anydml-installed anydml directml d3d12 dxcore dxgi anydml_ort anydml-cli anydml-demo example_top_k1
                                  example_scatter_nd)
foreach(target anydml_cuda anydml-pages anydml_python_package)
  if(TARGET ${target})
    add_dependencies(anydml-installed ${target})
  endif()
endforeach()
