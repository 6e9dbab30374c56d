"""Numbers as operators compute them: exactly, or in float64 where the contract allows some units in the last place."""
import math

from generator import elements

NAN, INF = math.nan, math.inf


def r32(number):
    """Rounds to FLOAT32, as FLOAT32 computations do after every step."""
    return elements.rounded("FLOAT32", number)


def is_float(data_type):
    return data_type in elements.FLOATS


def wrapped(data_type, integer):
    low, high = elements.limits(data_type)
    return (integer - low) % (high - low + 1) + low


def saturated(data_type, integer):
    low, high = elements.limits(data_type)
    return max(low, min(high, integer))


def truncated(data_type, number):
    """A number as an integer of the type: toward zero, saturated, NaN to 0."""
    if math.isnan(number):
        return 0
    low, high = elements.limits(data_type)
    if math.isinf(number):
        return high if number > 0 else low
    return saturated(data_type, int(number))


def stored(data_type, number):
    """The stored result: a float is rounded, an integer wraps."""
    return elements.rounded(data_type, float(number)) if is_float(data_type) else wrapped(data_type, int(number))


def half_to_even(number):
    """Rounds to an integer; infinities and NaN stay."""
    return math.copysign(round(number), number) if math.isfinite(number) else number


def maximum(a, b):
    if a != a or b != b:
        return NAN
    if a == b == 0 and isinstance(a, float):
        return a if math.copysign(1, a) > 0 else b
    return max(a, b)


def minimum(a, b):
    if a != a or b != b:
        return NAN
    if a == b == 0 and isinstance(a, float):
        return a if math.copysign(1, a) < 0 else b
    return min(a, b)


def ieee(function, *arguments, pole=NAN, overflow=INF):
    """A function of Python's math with IEEE's special values instead of exceptions."""
    if any(isinstance(x, float) and math.isnan(x) for x in arguments):
        return NAN
    try:
        return function(*arguments)
    except ValueError:
        return pole
    except OverflowError:
        return overflow


def divide(a, b):
    if b == 0:
        return NAN if a == 0 or a != a else math.copysign(INF, a) * math.copysign(1, b)
    if math.isinf(a) and math.isinf(b):
        return NAN
    return a / b


def power(a, b):
    """As in C; 1 and 0 take precedence over NaN."""
    if a == 1 or b == 0:
        return 1.0
    if a != a or b != b:
        return NAN
    odd = math.isfinite(b) and b == int(b) and int(b) % 2 == 1
    if a == 0 and b < 0:
        return math.copysign(INF, a) if odd else INF
    return ieee(math.pow, a, b, overflow=-INF if odd and a < 0 else INF)


def exp(x):
    return ieee(math.exp, x)


def expm1(x):
    return ieee(math.expm1, x)


def sigmoid(x):
    return 1 / (1 + exp(-x)) if not x < 0 else exp(x) / (1 + exp(x))


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x))) if x == x else NAN


def tanh(x):
    return math.tanh(x)


def gelu(x):
    if math.isinf(x):
        return x if x > 0 else -0.0
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def quantized(data_type, number, zero_point):
    """A quotient, rounded to the nearest step (ties to even), plus the zero point in integers."""
    if number != number:
        return saturated(data_type, zero_point)
    low, high = elements.limits(data_type)
    if math.isinf(number):
        return high if number > 0 else low
    return saturated(data_type, round(number) + zero_point)
