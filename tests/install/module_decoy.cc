// Reports that it was loaded.
#include <cstdio>

namespace {
[[gnu::constructor]] void Loaded() { std::fputs("the decoy was loaded\n", stderr); }
}  // namespace
