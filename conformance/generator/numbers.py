"""Data for cases, identical on every machine."""


def mixed(count, low, high, seed=1):
    """Integers in [low, high] without an apparent order."""
    values, state = [], seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(low + (state >> 33) % (high - low + 1))
    return values


def shuffled(count, seed=1):
    """0 ... count - 1, each once."""
    return sorted(range(count), key=mixed(count, 0, 2**31 - 1, seed).__getitem__)
