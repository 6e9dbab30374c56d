// IDMLCompiledOperator: a program and the operator that it came from (none for a graph).
#pragma once

#include "dml/device_child.h"
#include "dml/dispatchable.h"
#include "dml/operator.h"
#include "dml/program.h"

namespace anydml::dml {

class CompiledOperator final : public DeviceChild<IDMLCompiledOperator, IDMLDispatchable, IDMLPageable>,
                               public Dispatchable {
 public:
  static constexpr GUID kImplementationIid = {
      0x5f0c1a52, 0x7c1d, 0x4c11, {0x9a, 0x60, 0x3e, 0x52, 0x0d, 0x7b, 0x11, 0x03}};

  CompiledOperator(Device* device, Operator* source, std::shared_ptr<Program> program);

  DML_BINDING_PROPERTIES STDMETHODCALLTYPE GetBindingProperties() override;

  std::shared_ptr<const Layout> layout() const override { return layout_; }
  Device* owner() const override { return device(); }
  const std::shared_ptr<Program>& program() const { return layout_->programs[0]; }

 protected:
  void* QueryOther(REFIID iid) override;

 private:
  const ComPtr<Operator> source_;  // kept alive, as Windows does
  const std::shared_ptr<const Layout> layout_;
};

}  // namespace anydml::dml
