// Relations between a description's fields.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::client {

// The operator of this name, or bad usage with a suggestion.
Status FindSchema(std::string_view name, const OperatorSchema** schema);
// In any case, as people type it. Files must use DirectML's spelling.
Status FindSchemaInAnyCase(std::string_view name, const OperatorSchema** schema);
// The index of the field of this name, likewise.
Status FindSchemaField(const OperatorSchema& schema, std::string_view name, size_t* field);

// Whether the field is the length of an array in the same description.
bool IsCount(const OperatorSchema& schema, size_t field);

// Sets lengths from the arrays. The library reads arrays by them, so a given length must be right.
Status SetCounts(OperatorDesc* desc);

// The type of a DML_SCALAR_UNION: that in the operator's data type field, or else that of the first input.
DataType ScalarType(const OperatorDesc& desc);

}  // namespace anydml::client
