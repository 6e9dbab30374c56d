#include <dlfcn.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "kernel/module.h"
#include "ops/column.h"
#include "ops/operator.h"

namespace anydml {
namespace {

TEST(CudaModule, RegistersItsFamilies) {
  void* const handle = dlopen("libanydml_cuda.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto* module = static_cast<const Module*>(dlsym(handle, "AnyDmlModule"));
  ASSERT_NE(module, nullptr);
  // Every operator has an implementation in the module, with the module's prefix.
  std::set<std::string_view> families;
  for (const Operator* op : ImplementedOperators()) families.insert(op->family);
  for (const std::string_view family : families) {
    const auto names = module->column().NamesOf(family);
    EXPECT_FALSE(names.empty()) << family;
    for (const std::string_view name : names) EXPECT_TRUE(name.starts_with("cuda.")) << name;
  }
}

}  // namespace
}  // namespace anydml
