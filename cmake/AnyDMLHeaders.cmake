# anydml_headers: the headers with which clients of the library compile.
include(${CMAKE_CURRENT_LIST_DIR}/FindDirectXHeaders.cmake)

add_library(anydml_headers INTERFACE)
# The support folder comes first, because its d3d12.h wraps the real one.
target_include_directories(anydml_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/support>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_link_libraries(anydml_headers INTERFACE DirectML::DirectXHeaders)
