// Turns the caller's C structs into a description that obeys the schema.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

struct DML_OPERATOR_DESC;

namespace anydml {

// Reads `desc` by the schema's offsets into `out`. Follows only pointers that the schema names, and only as
// far as the counts say. Fails with E_INVALIDARG and a message that names operator and field.
Status ReadOperatorDesc(const DML_OPERATOR_DESC* desc, FeatureLevel level, OperatorDesc* out);

// Checks the schema's rules at `level`: availability, tensor rules, data types and dimension counts, enum
// values, relations. Rules beyond the schema belong to the operator (ops/operator.h).
Status ValidateOperatorDesc(const OperatorDesc& desc, FeatureLevel level);

}  // namespace anydml
