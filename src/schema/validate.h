// From the caller's C structs to a description that obeys the schema.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

struct DML_OPERATOR_DESC;

namespace anydml {

// Reads `desc` by the schema's offsets into `out`, following no pointer that the
// schema does not call for, and no further than the counts say. Fails with
// E_INVALIDARG and a sentence that names operator and field.
Status ReadOperatorDesc(const DML_OPERATOR_DESC* desc, FeatureLevel level, OperatorDesc* out);

// The schema's rules at `level`: availability, tensor rules, data types and
// dimension counts, enum values, relations. Rules beyond the schema are the
// operator's own (ops/operator.h).
Status ValidateOperatorDesc(const OperatorDesc& desc, FeatureLevel level);

}  // namespace anydml
