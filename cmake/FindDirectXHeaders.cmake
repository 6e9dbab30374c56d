# DirectML::DirectXHeaders: Microsoft's DirectX-Headers (Debian: directx-headers-dev).
# Also installed, for find_package(DirectML). ANYDML_DIRECTX_HEADERS names another folder.
if(NOT TARGET DirectML::DirectXHeaders)
  find_path(ANYDML_DIRECTX_INCLUDE directx/d3d12.h HINTS "${ANYDML_DIRECTX_HEADERS}" NO_CACHE)
  if(NOT ANYDML_DIRECTX_INCLUDE)
    message(FATAL_ERROR "DirectX-Headers not found: install directx-headers-dev, or set "
                        "ANYDML_DIRECTX_HEADERS to the folder that holds directx/d3d12.h")
  endif()
  add_library(DirectML::DirectXHeaders INTERFACE IMPORTED)
  set_target_properties(DirectML::DirectXHeaders PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
    "${ANYDML_DIRECTX_INCLUDE};${ANYDML_DIRECTX_INCLUDE}/wsl/stubs;${ANYDML_DIRECTX_INCLUDE}/directx")
endif()
