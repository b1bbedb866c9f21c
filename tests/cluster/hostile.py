"""Frames that no honest client sends, from a seed."""

import random
import struct
from collections.abc import Callable
from typing import Any

from tests.wire.filling import fill

from barnabas.wire.apis import ApiKey, api, apis
from barnabas.wire.codec.layout import layout
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

TOPIC = "fuzzed"
"""One that is there, for those who get as far as that."""

COORDINATED = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
)

PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "group_id": ("g", "h", ""),
    "groups": (["g", "h"],),
    "groups_names": (["g"], ["h"]),
    "group_ids": (["g", "h"],),
    "member_id": ("", "m", "n"),
    "group_instance_id": (None, "i", "j"),
    "instance_id": (None, "i", "j"),
    "session_timeout_ms": (6_000, 30_000),
    "rebalance_timeout_ms": (0, 100, 30_000),
    "generation_id": (-1, 0, 1, 2),
    "generation_id_or_member_epoch": (-1, 0, 1, 2),
    "member_epoch": (-2, -1, 0, 0, 1, 2, 3),
    "protocol_type": ("consumer",),
    "protocol_name": ("range",),
    "server_assignor": (None, "uniform", "range"),
    "subscribed_topic_names": (None, [TOPIC], [TOPIC, "not there"]),
    "subscribed_topic_regex": (None, "", "f.*", "("),
    "name": (TOPIC, "range"),
    "partition_index": (0, 1, 7),
    "partition_indexes": ([0], [0, 1, 7]),
    "partitions": ([0], [0, 1, 7]),
    "transactional_id": ("x", "y"),
    "transaction_timeout_ms": (1, 1_000),
    "producer_id": (-1, 0, 1, 2),
    "producer_epoch": (-1, 0, 1, 2),
}
"""What makes sense in a field of that name, so that requests are about the same few things."""

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
    among = [api(key) for key in COORDINATED] if seeded.random() < 0.5 else apis()
    chosen = seeded.choice(among)
    return request(seeded, chosen.key, seeded.choice(list(chosen.versions)))


def request(seeded: random.Random, key: int, version: int) -> bytes:
    kind = api(key).request
    message = fill(kind, version, seeded)
    if key in COORDINATED and seeded.random() < 0.8:
        make_plausible(message, version, seeded)
    out = Outgoing()
    client_id = seeded.choice((None, "", "fuzz"))
    write_request_header(RequestHeader(key, version, seeded.randrange(2**31), client_id), out)
    kind.writer(version)(message, out)
    return bytes(out)


def make_plausible(struct: Any, version: int, seeded: random.Random) -> None:
    """Set most of the fields that would have a request refused before anybody looks at it."""
    for field in layout(struct.__class__):
        value = getattr(struct, field.name)
        if isinstance(field.scalar, type):
            inner = value if field.is_array else [value]
            for each in inner or ():
                make_plausible(each, version, seeded)
        elif version in field.versions and field.name in PLAUSIBLE and seeded.random() < 0.9:
            chosen = seeded.choice(PLAUSIBLE[field.name])
            if chosen is not None or field.is_nullable(version):
                setattr(struct, field.name, chosen)


def framed(body: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(body)) + body
