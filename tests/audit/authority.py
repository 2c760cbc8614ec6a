"""A time stamp authority that answers as RFC 3161 says; it signs nothing, which nobody here checks."""

TST_INFO = "060b2a864886f70d0109100104"
SIGNED_DATA = "06092a864886f70d010702"
SHA256 = "300d06096086480165030402010500"
POLICY = "06042a030405"


def der(tag, *parts):
    """An element of DER."""
    content = b"".join(part if isinstance(part, bytes) else bytes.fromhex(part) for part in parts)
    size = len(content)
    if size < 128:
        length = bytes([size])
    else:
        digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
        length = bytes([128 + len(digits)]) + digits
    return bytes([tag]) + length + content


def integer(value):
    return der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def asked(question):
    """The digest and the nonce of a question."""
    _, _, rest = question.partition(b"\x04\x20")
    digest, rest = rest[:32], rest[32:]
    assert rest[0] == 0x02
    return digest, int.from_bytes(rest[2 : 2 + rest[1]], "big")


def answer(digest, nonce, *, status=0):
    """The answer to a question about a digest."""
    if status > 1:
        return der(0x30, der(0x30, integer(status)))
    imprint = der(0x30, SHA256, der(0x04, digest))
    time = der(0x18, b"20261124120000Z")
    info = der(0x30, integer(1), POLICY, imprint, integer(7), time, integer(nonce))
    content = der(0x30, TST_INFO, der(0xA0, der(0x04, info)))
    signed = der(0x30, integer(3), der(0x31, SHA256), content, der(0x31))
    token = der(0x30, SIGNED_DATA, der(0xA0, signed))
    return der(0x30, der(0x30, integer(status)), token)
