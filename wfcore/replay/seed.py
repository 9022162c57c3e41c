"""The seed of a run's random numbers: SipHash-1-3 of its run id, as Temporal's workers take it."""

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
#: Follows a text that is hashed, so that two texts differ from their concatenation.
_END_OF_TEXT = b"\xff"


def random_seed(run_id: str) -> int:
    """The seed for a run, whose id is the original one if it was reset."""
    return _siphash_1_3(run_id.encode() + _END_OF_TEXT)


def _siphash_1_3(data: bytes) -> int:
    """SipHash with one round a word and three at the end, under the key 0."""
    state = _INITIAL
    whole = len(data) - len(data) % 8
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    words.append((len(data) & 0xFF) << 56 | int.from_bytes(data[whole:], "little"))
    for word in words:
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
        state = (v0 ^ word, v1, v2, v3)
    v0, v1, v2, v3 = state
    v2 ^= 0xFF
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) & _MASK
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 = (v2 + v3) & _MASK
    v3 = _rotate(v3, 16) ^ v2
    v0 = (v0 + v3) & _MASK
    v3 = _rotate(v3, 21) ^ v0
    v2 = (v2 + v1) & _MASK
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
