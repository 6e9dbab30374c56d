# The conformance pack is generated, not committed: anydml-conformance writes ANYDML_CONFORMANCE_PACK in a few
# seconds (conformance/README.md). `anydml conformance` in the build folder finds it there, and `cmake
# --install` takes it from there.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "AnyDML: no conformance pack, Python 3 not found")
  return()
endif()
set(ANYDML_CONFORMANCE_PACK ${PROJECT_BINARY_DIR}/conformance)
set(generator ${PROJECT_SOURCE_DIR}/conformance)
file(GLOB generator_modules CONFIGURE_DEPENDS ${generator}/generator/*.py)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/conformance.stamp
  COMMAND ${Python3_EXECUTABLE} -B ${generator}/generate.py ${ANYDML_CONFORMANCE_PACK}
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/conformance.stamp
  DEPENDS ${generator}/generate.py ${generator_modules} ${generator}/README.md ${generator}/judge.py
          ${PROJECT_SOURCE_DIR}/schema/operators.json
  COMMENT "Writing the conformance pack" VERBATIM)
add_custom_target(anydml-conformance ALL DEPENDS ${PROJECT_BINARY_DIR}/conformance.stamp)
install(DIRECTORY ${ANYDML_CONFORMANCE_PACK}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/anydml/conformance COMPONENT tools
        OPTIONAL)
