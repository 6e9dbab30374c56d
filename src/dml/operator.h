// IDMLOperator: a validated description and the family that implements it.
#pragma once

#include "dml/device_child.h"
#include "ops/operator.h"
#include "schema/operator_desc.h"

namespace anydml::dml {

// Reads and validates `desc`, then applies the operator's own rules. A missing implementation is reported
// last, after an invalid description.
Status CheckOperatorDesc(const DML_OPERATOR_DESC* desc, FeatureLevel level, OperatorDesc* out,
                         const anydml::Operator** implementation);

class Operator final : public DeviceChild<IDMLOperator> {
 public:
  static constexpr GUID kImplementationIid = {
      0x5f0c1a52, 0x7c1d, 0x4c11, {0x9a, 0x60, 0x3e, 0x52, 0x0d, 0x7b, 0x11, 0x01}};

  Operator(Device* device, OperatorDesc desc, const anydml::Operator& implementation);

  const OperatorDesc& desc() const { return desc_; }
  const anydml::Operator& implementation() const { return implementation_; }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementationIid ? this : nullptr; }

 private:
  const OperatorDesc desc_;
  const anydml::Operator& implementation_;
};

}  // namespace anydml::dml
