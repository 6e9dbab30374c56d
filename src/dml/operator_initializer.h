// IDMLOperatorInitializer: initialises any number of compiled operators at once.
#pragma once

#include <vector>

#include "dml/device_child.h"
#include "dml/dispatchable.h"

namespace anydml::dml {

// The programs of an array of compiled operators. Refuses null and foreign ones, duplicates, and those that
// are already initialised.
Status CollectPrograms(const char* method, const Device* device, UINT count,
                       IDMLCompiledOperator* const* operators,
                       std::vector<std::shared_ptr<Program>>* programs);

class OperatorInitializer final : public DeviceChild<IDMLOperatorInitializer, IDMLDispatchable, IDMLPageable>,
                                  public Dispatchable {
 public:
  OperatorInitializer(Device* device, std::vector<std::shared_ptr<Program>> programs);

  DML_BINDING_PROPERTIES STDMETHODCALLTYPE GetBindingProperties() override;
  HRESULT STDMETHODCALLTYPE Reset(UINT count, IDMLCompiledOperator* const* operators) override;

  std::shared_ptr<const Layout> layout() const override { return layout_; }
  Device* owner() const override { return device(); }

 protected:
  void* QueryOther(REFIID iid) override;

 private:
  // Replaced, never modified: recorded commands and binding tables keep their version, so Reset need not wait
  // for the device.
  std::shared_ptr<const Layout> layout_;
};

}  // namespace anydml::dml
