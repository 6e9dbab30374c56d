// Compile-time comparison of DirectML.h with the schema, for whatever
// DML_TARGET_VERSION is in force: everything up to it is declared as it should
// be, nothing after it is declared at all.
//
// Included right after DirectML.h, at global scope.
#ifndef ANYDML_TESTS_ABI_DECLARATIONS_CHECK_H_
#define ANYDML_TESTS_ABI_DECLARATIONS_CHECK_H_

#include <stddef.h>

#include <type_traits>

#define ABI_ENUM_TYPE(type) static_assert(std::is_enum<type>::value && sizeof(type) == 4, #type);
#define ABI_ENUM_VALUE(type, name, number)                        \
  static_assert(static_cast<long long>(name) == (number), #name); \
  static_assert(std::is_same<decltype(name), type>::value, #name);
#define ABI_STRUCT(type, size)                  \
  static_assert(sizeof(type) == (size), #type); \
  static_assert(std::is_trivial<type>::value && std::is_standard_layout<type>::value, #type);
#define ABI_FIELD(type, field, ctype, offset)                         \
  static_assert(offsetof(type, field) == (offset), #type "." #field); \
  static_assert(std::is_same<decltype(type::field), ctype>::value, #type "." #field);
#define ABI_ALIAS(alias, type) static_assert(std::is_same<alias, type>::value, #alias);

// Declaring the name as something else fails if the header declares it.
#define ABI_NO_TYPE(name) typedef void name;
#define ABI_NO_VALUE(name) typedef void name;

#include "abi_operators_generated.inc"

// -----------------------------------------------------------------------------
// What the schema does not list
// -----------------------------------------------------------------------------

#define ABI_FIELD_AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field);

#define ABI_CONSTANT(name, number)        \
  static_assert(name == (number), #name); \
  static_assert(std::is_same<decltype(name), const UINT>::value, #name);
ABI_CONSTANT(DML_TENSOR_DIMENSION_COUNT_MAX, 5)
ABI_CONSTANT(DML_TEMPORARY_BUFFER_ALIGNMENT, 256)
ABI_CONSTANT(DML_PERSISTENT_BUFFER_ALIGNMENT, 256)
ABI_CONSTANT(DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT, 16)
#if DML_TARGET_VERSION >= 0x3000
ABI_CONSTANT(DML_TENSOR_DIMENSION_COUNT_MAX1, 8)
#else
ABI_NO_VALUE(DML_TENSOR_DIMENSION_COUNT_MAX1)
#endif

ABI_STRUCT(DML_BUFFER_TENSOR_DESC, 48)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, DataType, 0)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, Flags, 4)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, DimensionCount, 8)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, Sizes, 16)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, Strides, 24)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes, 32)
ABI_FIELD_AT(DML_BUFFER_TENSOR_DESC, GuaranteedBaseOffsetAlignment, 40)
ABI_STRUCT(DML_TENSOR_DESC, 16)
ABI_FIELD_AT(DML_TENSOR_DESC, Type, 0)
ABI_FIELD_AT(DML_TENSOR_DESC, Desc, 8)
ABI_STRUCT(DML_OPERATOR_DESC, 16)
ABI_FIELD_AT(DML_OPERATOR_DESC, Type, 0)
ABI_FIELD_AT(DML_OPERATOR_DESC, Desc, 8)
ABI_STRUCT(DML_SCALE_BIAS, 8)
ABI_FIELD_AT(DML_SCALE_BIAS, Scale, 0)
ABI_FIELD_AT(DML_SCALE_BIAS, Bias, 4)
ABI_STRUCT(DML_SIZE_2D, 8)
ABI_FIELD_AT(DML_SIZE_2D, Width, 0)
ABI_FIELD_AT(DML_SIZE_2D, Height, 4)
ABI_STRUCT(DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT, 4)
ABI_STRUCT(DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT, 4)
ABI_STRUCT(DML_BINDING_TABLE_DESC, 32)
ABI_FIELD_AT(DML_BINDING_TABLE_DESC, Dispatchable, 0)
ABI_FIELD_AT(DML_BINDING_TABLE_DESC, CPUDescriptorHandle, 8)
ABI_FIELD_AT(DML_BINDING_TABLE_DESC, GPUDescriptorHandle, 16)
ABI_FIELD_AT(DML_BINDING_TABLE_DESC, SizeInDescriptors, 24)
ABI_STRUCT(DML_BINDING_PROPERTIES, 24)
ABI_FIELD_AT(DML_BINDING_PROPERTIES, RequiredDescriptorCount, 0)
ABI_FIELD_AT(DML_BINDING_PROPERTIES, TemporaryResourceSize, 8)
ABI_FIELD_AT(DML_BINDING_PROPERTIES, PersistentResourceSize, 16)
ABI_STRUCT(DML_BINDING_DESC, 16)
ABI_FIELD_AT(DML_BINDING_DESC, Type, 0)
ABI_FIELD_AT(DML_BINDING_DESC, Desc, 8)
ABI_STRUCT(DML_BUFFER_BINDING, 24)
ABI_FIELD_AT(DML_BUFFER_BINDING, Buffer, 0)
ABI_FIELD_AT(DML_BUFFER_BINDING, Offset, 8)
ABI_FIELD_AT(DML_BUFFER_BINDING, SizeInBytes, 16)
ABI_STRUCT(DML_BUFFER_ARRAY_BINDING, 16)
ABI_FIELD_AT(DML_BUFFER_ARRAY_BINDING, BindingCount, 0)
ABI_FIELD_AT(DML_BUFFER_ARRAY_BINDING, Bindings, 8)

#if DML_TARGET_VERSION >= 0x2000
ABI_STRUCT(DML_FEATURE_QUERY_FEATURE_LEVELS, 16)
ABI_FIELD_AT(DML_FEATURE_QUERY_FEATURE_LEVELS, RequestedFeatureLevelCount, 0)
ABI_FIELD_AT(DML_FEATURE_QUERY_FEATURE_LEVELS, RequestedFeatureLevels, 8)
ABI_STRUCT(DML_FEATURE_DATA_FEATURE_LEVELS, 4)
static_assert(
    std::is_same<decltype(&DMLCreateDevice1), HRESULT (*)(ID3D12Device*, DML_CREATE_DEVICE_FLAGS,
                                                          DML_FEATURE_LEVEL, const IID&, void**)>::value,
    "");
#else
ABI_NO_TYPE(DML_FEATURE_QUERY_FEATURE_LEVELS)
ABI_NO_TYPE(DML_FEATURE_DATA_FEATURE_LEVELS)
ABI_NO_TYPE(DMLCreateDevice1)
#endif

#if DML_TARGET_VERSION >= 0x2100
static_assert(sizeof(DML_SCALAR_UNION) == 8, "");
ABI_STRUCT(DML_GRAPH_EDGE_DESC, 16)
ABI_STRUCT(DML_INPUT_GRAPH_EDGE_DESC, 24)
ABI_FIELD_AT(DML_INPUT_GRAPH_EDGE_DESC, GraphInputIndex, 0)
ABI_FIELD_AT(DML_INPUT_GRAPH_EDGE_DESC, ToNodeIndex, 4)
ABI_FIELD_AT(DML_INPUT_GRAPH_EDGE_DESC, ToNodeInputIndex, 8)
ABI_FIELD_AT(DML_INPUT_GRAPH_EDGE_DESC, Name, 16)
ABI_STRUCT(DML_OUTPUT_GRAPH_EDGE_DESC, 24)
ABI_FIELD_AT(DML_OUTPUT_GRAPH_EDGE_DESC, FromNodeIndex, 0)
ABI_FIELD_AT(DML_OUTPUT_GRAPH_EDGE_DESC, FromNodeOutputIndex, 4)
ABI_FIELD_AT(DML_OUTPUT_GRAPH_EDGE_DESC, GraphOutputIndex, 8)
ABI_FIELD_AT(DML_OUTPUT_GRAPH_EDGE_DESC, Name, 16)
ABI_STRUCT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, 24)
ABI_FIELD_AT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, FromNodeIndex, 0)
ABI_FIELD_AT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, FromNodeOutputIndex, 4)
ABI_FIELD_AT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, ToNodeIndex, 8)
ABI_FIELD_AT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, ToNodeInputIndex, 12)
ABI_FIELD_AT(DML_INTERMEDIATE_GRAPH_EDGE_DESC, Name, 16)
ABI_STRUCT(DML_GRAPH_NODE_DESC, 16)
ABI_STRUCT(DML_OPERATOR_GRAPH_NODE_DESC, 16)
ABI_FIELD_AT(DML_OPERATOR_GRAPH_NODE_DESC, Operator, 0)
ABI_FIELD_AT(DML_OPERATOR_GRAPH_NODE_DESC, Name, 8)
ABI_STRUCT(DML_GRAPH_DESC, 72)
ABI_FIELD_AT(DML_GRAPH_DESC, InputCount, 0)
ABI_FIELD_AT(DML_GRAPH_DESC, OutputCount, 4)
ABI_FIELD_AT(DML_GRAPH_DESC, NodeCount, 8)
ABI_FIELD_AT(DML_GRAPH_DESC, Nodes, 16)
ABI_FIELD_AT(DML_GRAPH_DESC, InputEdgeCount, 24)
ABI_FIELD_AT(DML_GRAPH_DESC, InputEdges, 32)
ABI_FIELD_AT(DML_GRAPH_DESC, OutputEdgeCount, 40)
ABI_FIELD_AT(DML_GRAPH_DESC, OutputEdges, 48)
ABI_FIELD_AT(DML_GRAPH_DESC, IntermediateEdgeCount, 56)
ABI_FIELD_AT(DML_GRAPH_DESC, IntermediateEdges, 64)
static_assert(std::is_base_of<IDMLDevice, IDMLDevice1>::value, "");
#else
ABI_NO_TYPE(DML_SCALAR_UNION)
ABI_NO_TYPE(DML_GRAPH_EDGE_DESC)
ABI_NO_TYPE(DML_INPUT_GRAPH_EDGE_DESC)
ABI_NO_TYPE(DML_OUTPUT_GRAPH_EDGE_DESC)
ABI_NO_TYPE(DML_INTERMEDIATE_GRAPH_EDGE_DESC)
ABI_NO_TYPE(DML_GRAPH_NODE_DESC)
ABI_NO_TYPE(DML_OPERATOR_GRAPH_NODE_DESC)
ABI_NO_TYPE(DML_GRAPH_DESC)
ABI_NO_TYPE(IDMLDevice1)
#endif

#if DML_TARGET_VERSION >= 0x6200
ABI_STRUCT(DML_CONSTANT_DATA_GRAPH_NODE_DESC, 24)
ABI_FIELD_AT(DML_CONSTANT_DATA_GRAPH_NODE_DESC, Data, 0)
ABI_FIELD_AT(DML_CONSTANT_DATA_GRAPH_NODE_DESC, DataSize, 8)
ABI_FIELD_AT(DML_CONSTANT_DATA_GRAPH_NODE_DESC, Name, 16)
#else
ABI_NO_TYPE(DML_CONSTANT_DATA_GRAPH_NODE_DESC)
#endif

#endif  // ANYDML_TESTS_ABI_DECLARATIONS_CHECK_H_
