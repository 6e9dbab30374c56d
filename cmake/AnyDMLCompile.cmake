# Compiler settings for everything of ours; never exported to users.
find_package(Threads REQUIRED)

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(ANYDML_WERROR)
  add_compile_options(-Werror)
endif()

if(ANYDML_SANITIZE)
  add_compile_options(-fsanitize=${ANYDML_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ANYDML_SANITIZE})
  if(ANYDML_SANITIZE MATCHES undefined)
    # A finding fails the test instead of scrolling by.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
