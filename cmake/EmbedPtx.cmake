# cmake -DFROM=file.ptx -DTO=file.cc -P EmbedPtx.cmake: the text as a C++ function
# (ops/element/cuda/ptx_functions.h). Compilers limit the length of a string literal, so it is an array of
# bytes, 16 per line.
file(READ ${FROM} text HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${text}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes
       "${bytes}")
file(WRITE ${TO} "#include \"ops/element/cuda/ptx_functions.h\"\n
namespace anydml::element_cuda {
namespace {
constexpr char kText[] = {
${bytes}};
}  // namespace
std::string_view CompiledFunctionsPtx() { return {kText, sizeof(kText)}; }
}  // namespace anydml::element_cuda
")
