# cmake --install: libraries in a folder of their own (the names are those of
# Windows components, which must not shadow another libd3d12.so), headers, the CMake
# package DirectML and the pkg-config file directml.
include(CMakePackageConfigHelpers)

set(ANYDML_LIBDIR ${CMAKE_INSTALL_LIBDIR}/anydml)
set(ANYDML_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/anydml)
set(ANYDML_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/DirectML)

install(TARGETS anydml directml d3d12 dxcore dxgi LIBRARY DESTINATION ${ANYDML_LIBDIR})
if(ANYDML_HAVE_CUDA)
  install(TARGETS anydml_cuda LIBRARY DESTINATION ${ANYDML_LIBDIR})
endif()
# A provider for onnxruntime, where it was built.
install(TARGETS anydml_ort LIBRARY DESTINATION ${ANYDML_LIBDIR} OPTIONAL)
install(DIRECTORY include/ DESTINATION ${ANYDML_INCLUDEDIR})

# cmake --install BUILD --component nuget: the folders of Microsoft's DirectML package, for build scripts that take it.
# They put include/ alone on the path, so that the support headers lie beside DirectML.h there.
set(nuget_platform x64-linux)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(nuget_platform arm64-linux)
endif()
set(nuget_libraries anydml directml d3d12 dxcore dxgi)
if(ANYDML_HAVE_CUDA)
  list(APPEND nuget_libraries anydml_cuda)
endif()
set(nuget_component COMPONENT nuget EXCLUDE_FROM_ALL)
install(TARGETS ${nuget_libraries} LIBRARY DESTINATION bin/${nuget_platform} ${nuget_component})
install(DIRECTORY include/ DESTINATION include ${nuget_component} PATTERN support EXCLUDE)
install(DIRECTORY include/support/ DESTINATION include ${nuget_component})
install(FILES LICENSE DESTINATION . ${nuget_component})
file(RELATIVE_PATH bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${ANYDML_LIBDIR}")
anydml_set_runpath(anydml-cli "$ORIGIN/${bin_to_lib}")
install(TARGETS anydml-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# That path leads to the libraries in the build tree, too.
get_filename_component(lib_link ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${bin_to_lib} ABSOLUTE)
get_filename_component(lib_link_folder ${lib_link} DIRECTORY)
string(FIND "${lib_link}" "${PROJECT_BINARY_DIR}/" in_build_tree)
if(NOT in_build_tree EQUAL 0)
  message(WARNING "AnyDML: with these install folders ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/anydml finds its libraries "
                  "only when it is installed")
elseif(NOT EXISTS ${lib_link})
  file(MAKE_DIRECTORY ${lib_link_folder})
  file(RELATIVE_PATH link_to_lib ${lib_link_folder} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  if(NOT link_to_lib)
    set(link_to_lib .)
  endif()
  file(CREATE_LINK ${link_to_lib} ${lib_link} SYMBOLIC)
endif()
install(DIRECTORY conformance/ DESTINATION ${CMAKE_INSTALL_DATADIR}/anydml/conformance
        FILES_MATCHING PATTERN "*.json" PATTERN README.md PATTERN judge.py
        PATTERN generator EXCLUDE)

configure_package_config_file(cmake/DirectMLConfig.cmake.in ${PROJECT_BINARY_DIR}/DirectMLConfig.cmake
  INSTALL_DESTINATION ${ANYDML_CMAKEDIR} PATH_VARS ANYDML_LIBDIR ANYDML_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/DirectMLConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/DirectMLConfig.cmake ${PROJECT_BINARY_DIR}/DirectMLConfigVersion.cmake
              cmake/FindDirectXHeaders.cmake DESTINATION ${ANYDML_CMAKEDIR})

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/directml.pc.in ${PROJECT_BINARY_DIR}/directml.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/directml.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
