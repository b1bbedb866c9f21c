"""Frames that no honest client sends, from a seed."""

import random
import struct
from collections.abc import Callable

from tests.wire.filling import fill

from barnabas.wire.apis import api, apis
from barnabas.wire.headers import RequestHeader, write_request_header
from barnabas.wire.outgoing import Outgoing

LENGTHS = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x07",  # 2^31 - 1 as a varint
    b"\xff" * 10,  # a varint that does not end
    b"\x00",
)
FRAME_SIZES = (-1, -(2**31), 0, 1, 3, 2**31 - 1, 100 * 1024 * 1024 + 1)

Forgery = Callable[[random.Random], bytes]


def every_request(seeded: random.Random) -> list[bytes]:
    """A well-formed frame of every API and version, with any values in its fields."""
    return [
        framed(request(seeded, each.key, version)) for each in apis() for version in each.versions
    ]


def forge(seeded: random.Random) -> bytes:
    """The bytes for one connection: a few frames, one after another."""
    return b"".join(seeded.choice(FORGERIES)(seeded) for _ in range(seeded.randint(1, 4)))


def any_request(seeded: random.Random) -> bytes:
    return framed(valid(seeded))


def noise(seeded: random.Random) -> bytes:
    return framed(seeded.randbytes(seeded.randrange(2000)))


def noise_without_a_frame(seeded: random.Random) -> bytes:
    return seeded.randbytes(seeded.randrange(1, 300))


def bytes_replaced(seeded: random.Random) -> bytes:
    body = bytearray(valid(seeded))
    for _ in range(seeded.randint(1, 8)):
        body[seeded.randrange(len(body))] = seeded.randrange(256)
    return framed(body)


def part_removed_or_repeated(seeded: random.Random) -> bytes:
    body = valid(seeded)
    begin, end = sorted(seeded.choices(range(len(body) + 1), k=2))
    return framed(body[:begin] + body[begin:end] * seeded.choice((0, 2)) + body[end:])


def length_out_of_bounds(seeded: random.Random) -> bytes:
    body = valid(seeded)
    place, length = seeded.randrange(8, len(body)), seeded.choice(LENGTHS)
    return framed(body[:place] + length + body[place + len(length) :])


def cut_short(seeded: random.Random) -> bytes:
    """A frame that promises more than comes before the client hangs up."""
    whole = any_request(seeded)
    return whole[: seeded.randrange(1, len(whole))]


def trailing_bytes(seeded: random.Random) -> bytes:
    return framed(valid(seeded) + seeded.randbytes(seeded.randint(1, 20)))


def version_not_spoken(seeded: random.Random) -> bytes:
    body = bytearray(valid(seeded))
    struct.pack_into(">h", body, 2, seeded.choice((-1, 99, 32767, seeded.randrange(30))))
    return framed(body)


def api_not_known(seeded: random.Random) -> bytes:
    body = bytearray(valid(seeded))
    struct.pack_into(">h", body, 0, seeded.choice((-1, 4, 7, 95, 1000, 32767)))
    return framed(body)


def frame_size_out_of_bounds(seeded: random.Random) -> bytes:
    return struct.pack(">i", seeded.choice(FRAME_SIZES)) + seeded.randbytes(seeded.randrange(50))


def huge_array(seeded: random.Random) -> bytes:
    """Metadata of so many topics, all of them there or only promised."""
    count = seeded.choice((50_000, 2**31 - 1))
    names = b"\x00\x01x" * min(count, 50_000)
    header = struct.pack(">hhihi", 3, 1, 1, -1, count)
    return framed(header + names)


FORGERIES: list[Forgery] = [
    any_request,
    noise,
    noise_without_a_frame,
    bytes_replaced,
    bytes_replaced,
    part_removed_or_repeated,
    length_out_of_bounds,
    length_out_of_bounds,
    cut_short,
    trailing_bytes,
    version_not_spoken,
    api_not_known,
    frame_size_out_of_bounds,
    huge_array,
]


def valid(seeded: random.Random) -> bytes:
    chosen = seeded.choice(apis())
    return request(seeded, chosen.key, seeded.choice(list(chosen.versions)))


def request(seeded: random.Random, key: int, version: int) -> bytes:
    out = Outgoing()
    client_id = seeded.choice((None, "", "fuzz"))
    write_request_header(RequestHeader(key, version, seeded.randrange(2**31), client_id), out)
    kind = api(key).request
    kind.writer(version)(fill(kind, version, seeded), out)
    return bytes(out)


def framed(body: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(body)) + body
