"""Verification of Ed25519 by RFC 8032, section 5.1.7, in integers: not by the library that signs."""

from hashlib import sha512

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
IDENTITY = (0, 1)


def added(one, other):
    (x, y), (u, v) = one, other
    twist = D * x * u * y * v
    return (x * v + u * y) * pow(1 + twist, -1, P) % P, (y * v + x * u) * pow(1 - twist, -1, P) % P


def times(number, point):
    found = IDENTITY
    while number:
        if number & 1:
            found = added(found, point)
        point, number = added(point, point), number >> 1
    return found


def decoded(text):
    """The point of 32 bytes: y, and the lowest bit of x."""
    number = int.from_bytes(text, "little")
    y, is_odd = number & (1 << 255) - 1, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT_OF_MINUS_ONE % P
    if x * x % P != square:
        raise ValueError("no point of the curve")
    return (P - x if x & 1 != is_odd else x), y


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def holds(public_key, signature, message):
    """Whether a signature of 64 bytes is that of the message under the key of 32 bytes."""
    commitment, answer = signature[:32], int.from_bytes(signature[32:], "little")
    if answer >= ORDER:
        return False
    challenge = int.from_bytes(sha512(commitment + public_key + message).digest(), "little") % ORDER
    return times(answer, BASE) == added(decoded(commitment), times(challenge, decoded(public_key)))
