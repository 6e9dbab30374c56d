// What libanydml_cuda.so exports. Needs no GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernel/module.h"
#include "ops/operator_table.h"

namespace anydml {
namespace {

// The module's list has the same entries as ours, and the functions of those for CUDA, which ours has not.
template <typename Problem>
void ExpectLinked(std::span<const Implementation<Problem>> theirs,
                  std::span<const Implementation<Problem>> ours) {
  bool any_cuda = false;
  for (const auto& entry : theirs) {
    const bool is_cuda = std::strcmp(entry.backend, "cuda") == 0;
    EXPECT_EQ(entry.create != nullptr, is_cuda) << entry.name;
    any_cuda |= is_cuda;
  }
  EXPECT_TRUE(any_cuda);
  size_t next = 0;
  for (const auto& entry : ours) {
    const bool is_cuda = std::strcmp(entry.backend, "cuda") == 0;
    EXPECT_EQ(entry.create == nullptr, is_cuda) << entry.name;
    if (!is_cuda) continue;
    while (next < theirs.size() && std::strcmp(theirs[next].backend, "cuda") != 0) ++next;
    ASSERT_LT(next, theirs.size()) << entry.name;
    EXPECT_STREQ(theirs[next++].name, entry.name);
  }
}

TEST(CudaModule, ExportsTheListsWithItsOwnFunctions) {
  void* const handle = dlopen("libanydml_cuda.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto* module = static_cast<const Module*>(dlsym(handle, "AnyDmlModule"));
  ASSERT_NE(module, nullptr);
  const OperatorTable& theirs = module->operators();
  const OperatorTable& ours = OwnOperatorTable();
  ExpectLinked(theirs.identity, ours.identity);
  ExpectLinked(theirs.scatter, ours.scatter);
  ExpectLinked(theirs.top_k, ours.top_k);
}

}  // namespace
}  // namespace anydml
