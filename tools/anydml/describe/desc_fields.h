// What a description's fields say about each other.
#pragma once

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::tools {

// The operator of this name, or bad usage with a suggestion.
Status FindSchema(std::string_view name, const OperatorSchema** schema);
// As people type it: in any case. Files have to write names as DirectML does.
Status FindSchemaInAnyCase(std::string_view name, const OperatorSchema** schema);
// The index of the field of this name, likewise.
Status FindSchemaField(const OperatorSchema& schema, std::string_view name, size_t* field);

// Whether the field is the length of an array of the same description.
bool IsCount(const OperatorSchema& schema, size_t field);

// Lengths come from the arrays. The library reads arrays by them, so a length
// that was given has to be true.
Status SetCounts(OperatorDesc* desc);

// A DML_SCALAR_UNION has the type that the operator's data type field names, or
// else that of the first input.
DataType ScalarType(const OperatorDesc& desc);

}  // namespace anydml::tools
