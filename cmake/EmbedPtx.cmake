# cmake -DFROM=file.ptx -DTO=file.cc -P EmbedPtx.cmake: the text as a function of C++ (ops/element/cuda/ptx_functions.h).
# Compilers have a longest string that they take; 16 bytes in a line are none.
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
