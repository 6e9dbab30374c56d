# anydml_rapidjson: the headers of RapidJSON, with which the command line reads JSON.
find_path(ANYDML_RAPIDJSON_INCLUDE rapidjson/reader.h HINTS "${ANYDML_RAPIDJSON}" NO_CACHE)
if(NOT ANYDML_RAPIDJSON_INCLUDE)
  message(FATAL_ERROR "RapidJSON not found: install rapidjson-dev, or set ANYDML_RAPIDJSON to the folder that holds "
                      "rapidjson/reader.h")
endif()
add_library(anydml_rapidjson INTERFACE)
target_include_directories(anydml_rapidjson SYSTEM INTERFACE ${ANYDML_RAPIDJSON_INCLUDE})
