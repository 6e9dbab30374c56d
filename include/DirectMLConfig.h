// What programs ask about the DirectML release they are built against.
#ifndef ANYDML_DIRECTMLCONFIG_H_
#define ANYDML_DIRECTMLCONFIG_H_

// Where the original carries a commit id, which some build scripts read with a
// regular expression and append to a library's name: hexadecimal digits only.
#define DIRECTML_SOURCE_VERSION "0000000000000000000000000000000000000000"

#define DIRECTML_PREVIEW_BUILD 0

#endif  // ANYDML_DIRECTMLCONFIG_H_
