"""Data types: their elements, and how models write these as numbers."""
import functools
import math
import struct

# Format codes of the struct module, all little-endian.
CODES = {"FLOAT64": "d", "FLOAT32": "f", "FLOAT16": "e", "INT64": "q", "INT32": "i", "INT16": "h", "INT8": "b",
         "UINT64": "Q", "UINT32": "I", "UINT16": "H", "UINT8": "B"}
CODECS = {name: struct.Struct("<" + code) for name, code in CODES.items()}
FLOATS = ("FLOAT64", "FLOAT32", "FLOAT16")
INTEGERS = tuple(name for name in CODES if name not in FLOATS)
SIGNED = tuple(name for name in INTEGERS if name.startswith("INT"))

# The value of unused places before an operator runs; it must still be there afterwards. No case uses it as
# data.
UNTOUCHED = 99


def size_of(data_type):
    return CODECS[data_type].size


def limits(data_type):
    """The smallest and the largest element of an integer type."""
    bits = 8 * size_of(data_type)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if data_type in SIGNED else (0, (1 << bits) - 1)


def bits_type(data_type):
    """The unsigned type in which a float's bits are written."""
    return {2: "UINT16", 4: "UINT32", 8: "UINT64"}[size_of(data_type)]


def from_bits(data_type, bits):
    """The number with these bits; the payload of a NaN is lost."""
    return CODECS[data_type].unpack(CODECS[bits_type(data_type)].pack(bits))[0]


def to_bits(data_type, number):
    return CODECS[bits_type(data_type)].unpack(CODECS[data_type].pack(number))[0]


def rounded(data_type, number):
    """The nearest element, ties to even; infinity beyond the largest one."""
    codec = CODECS[data_type]
    try:
        return codec.unpack(codec.pack(number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


# Zeros of both signs are equal as cache keys: as_json requests only one of them.
@functools.lru_cache(maxsize=None)
def shortest(data_type, number):
    """The shortest decimal that is read as the same element."""
    for digits in range(1, 17):
        text = f"{number:.{digits}g}"
        if rounded(data_type, float(text)) == number:
            return repr(float(text))
    return repr(number)


def as_json(number, data_type="FLOAT64"):
    """A number as models write it."""
    if isinstance(number, float):
        if math.isnan(number):
            return '"nan"'
        if math.isinf(number):
            return '"inf"' if number > 0 else '"-inf"'
        if number == int(number) and not (number == 0 and math.copysign(1, number) < 0):
            return str(int(number)) if abs(number) < 2**53 else shortest(data_type, number)
        return shortest(data_type, number)
    return repr(number)
