// Parses values of an operator's attributes: the text after "Field=".
#pragma once

#include <string_view>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::client {

// Everything except tensors and operators. `scalar_type` is the type of a DML_SCALAR_UNION.
Status ParseFieldValue(const FieldSchema& field, std::string_view text, DataType scalar_type,
                       FieldValue* value);

// One element of a tensor; 4-bit elements as a byte. Returns null, or what is wrong with the text ("is out of
// range").
const char* ParseElement(std::string_view text, DataType type, Scalar* scalar);

// Members by their full or short name.
Status ParseEnumMember(const EnumSchema& enumeration, std::string_view text, uint32_t* value);

// "uint32", "UINT32" or "DML_TENSOR_DATA_TYPE_UINT32"; kUnknown for anything else.
DataType ParseDataType(std::string_view text);

// An enumeration's member without the enumeration's name: "DECREASING".
std::string_view ShortName(const EnumSchema& enumeration, const EnumMember& member);

// "UINT", "enum DML_AXIS_DIRECTION", ... for messages and help.
std::string FieldTypeName(const FieldSchema& field);

}  // namespace anydml::client
