// SPDX-License-Identifier: Apache-2.0
// The numbers of attributes and types in portable bytecode, for its reader and its writer.  Those
// of element types are in elements.def.
#ifndef INTEROP_VHLO_H
#define INTEROP_VHLO_H

#include <stdint.h>

enum {
    VHLO_ATTR_ARRAY = 1,
    VHLO_ATTR_BOOL = 2,
    VHLO_ATTR_DIRECTION = 3,
    VHLO_ATTR_COMPARE_TYPE = 4,
    VHLO_ATTR_API_VERSION = 5,
    VHLO_ATTR_DICTIONARY = 6,
    VHLO_ATTR_FFT_TYPE = 7,
    VHLO_ATTR_FLOAT = 8,
    VHLO_ATTR_INTEGER = 9,
    VHLO_ATTR_ALIAS = 10,
    VHLO_ATTR_PRECISION = 11,
    VHLO_ATTR_RNG_ALGORITHM = 12,
    VHLO_ATTR_RNG_DISTRIBUTION = 13,
    VHLO_ATTR_STRING = 14,
    VHLO_ATTR_TENSOR = 15,
    VHLO_ATTR_TRANSPOSE = 16,
    VHLO_ATTR_TYPE = 17,
    VHLO_ATTR_BOUNDS = 18,
    VHLO_ATTR_ACCURACY_MODE = 19,
    VHLO_ATTR_RESULT_ACCURACY = 20,
    VHLO_ATTR_SUB_AXIS = 21,
    VHLO_ATTR_AXIS_REF = 22,
    VHLO_ATTR_GROUP_AXES = 23,
    VHLO_ATTR_MESH_AXIS = 24,
    VHLO_ATTR_MESH = 25,
};

enum {
    VHLO_TYPE_COMPLEX = 1,
    VHLO_TYPE_FUNCTION = 8,
    VHLO_TYPE_TENSOR = 20,
    VHLO_TYPE_ENCODED_TENSOR = 21,
    VHLO_TYPE_TOKEN = 22,
    VHLO_TYPE_TUPLE = 23,
    VHLO_TYPE_QUANTIZED = 24,
    VHLO_TYPE_UNRANKED = 25,
    VHLO_TYPE_WITNESS = 26,
    VHLO_TYPE_QUANTIZED_AXIS = 30,
    VHLO_TYPE_NONE = 33,
    VHLO_TYPE_BUFFER = 41,
    VHLO_TYPE_FUTURE = 42,
};

// Of MLIR itself.
enum {
    BUILTIN_ATTR_ARRAY = 0,
    BUILTIN_ATTR_DICTIONARY = 1,
    BUILTIN_ATTR_STRING = 2,
    BUILTIN_ATTR_TYPED_STRING = 3,
    BUILTIN_ATTR_SYMBOL = 4,
    BUILTIN_ATTR_NESTED_SYMBOL = 5,
    BUILTIN_ATTR_TYPE = 6,
    BUILTIN_ATTR_UNIT = 7,
    BUILTIN_ATTR_INTEGER = 8,
    BUILTIN_ATTR_FLOAT = 9,
    BUILTIN_ATTR_LOC_CALL = 10,
    BUILTIN_ATTR_LOC_LINE = 11,
    BUILTIN_ATTR_LOC_FUSED = 12,
    BUILTIN_ATTR_LOC_FUSED_MORE = 13,
    BUILTIN_ATTR_LOC_NAME = 14,
    BUILTIN_ATTR_LOC_UNKNOWN = 15,
    BUILTIN_ATTR_DENSE_ARRAY = 17,
    BUILTIN_ATTR_DENSE = 18,
    BUILTIN_ATTR_LOC_RANGE = 22,
};

enum {
    BUILTIN_TYPE_INTEGER = 0,
    BUILTIN_TYPE_INDEX = 1,
    BUILTIN_TYPE_FUNCTION = 2,
    BUILTIN_TYPE_BF16 = 3, // then f16, f32, f64
    BUILTIN_TYPE_COMPLEX = 9,
    BUILTIN_TYPE_NONE = 12,
    BUILTIN_TYPE_TENSOR = 13,
    BUILTIN_TYPE_ENCODED_TENSOR = 14,
    BUILTIN_TYPE_TUPLE = 15,
};

enum { VHLO_MAX_WORDS = 8 };

// An enumeration and its words by their number, NULL where there is none.
struct vhlo_enum {
    unsigned code; // as an attribute
    const char *name;
    const char *words[VHLO_MAX_WORDS];
};
extern const struct vhlo_enum vhlo_enums[]; // the last one has no name

#endif
