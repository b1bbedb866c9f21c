"""Malformed and random request frames, generated from a seed."""

import random
import struct
from collections.abc import Callable
from typing import Any

from tests.wire.message_samples import fill

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
"""An existing topic, for requests that are valid enough."""

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
"""Plausible values by field name, so that requests use the same few groups and producers."""

FrameGenerator = Callable[[random.Random], bytes]


def every_request(rng: random.Random) -> list[bytes]:
    """Returns a well-formed frame of every API and version, with random values."""
    return [with_size(request(rng, api.key, version)) for api in apis() for version in api.versions]


def malformed_frames(rng: random.Random) -> bytes:
    """Returns the bytes for one connection: a few frames."""
    return b"".join(rng.choice(GENERATORS)(rng) for _ in range(rng.randint(1, 4)))


def any_request(rng: random.Random) -> bytes:
    return with_size(valid(rng))


def noise(rng: random.Random) -> bytes:
    return with_size(rng.randbytes(rng.randrange(2000)))


def noise_without_a_frame(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 300))


def bytes_replaced(rng: random.Random) -> bytes:
    body = bytearray(valid(rng))
    for _ in range(rng.randint(1, 8)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return with_size(body)


def part_removed_or_repeated(rng: random.Random) -> bytes:
    body = valid(rng)
    begin, end = sorted(rng.choices(range(len(body) + 1), k=2))
    return with_size(body[:begin] + body[begin:end] * rng.choice((0, 2)) + body[end:])


def length_out_of_bounds(rng: random.Random) -> bytes:
    body = valid(rng)
    position, length = rng.randrange(8, len(body)), rng.choice(LENGTHS)
    return with_size(body[:position] + length + body[position + len(length) :])


def cut_short(rng: random.Random) -> bytes:
    """Returns a frame that ends before its announced size."""
    whole = any_request(rng)
    return whole[: rng.randrange(1, len(whole))]


def trailing_bytes(rng: random.Random) -> bytes:
    return with_size(valid(rng) + rng.randbytes(rng.randint(1, 20)))


def unsupported_version(rng: random.Random) -> bytes:
    body = bytearray(valid(rng))
    struct.pack_into(">h", body, 2, rng.choice((-1, 99, 32767, rng.randrange(30))))
    return with_size(body)


def unknown_api(rng: random.Random) -> bytes:
    body = bytearray(valid(rng))
    struct.pack_into(">h", body, 0, rng.choice((-1, 4, 7, 95, 1000, 32767)))
    return with_size(body)


def frame_size_out_of_bounds(rng: random.Random) -> bytes:
    return struct.pack(">i", rng.choice(FRAME_SIZES)) + rng.randbytes(rng.randrange(50))


def huge_array(rng: random.Random) -> bytes:
    """Returns a Metadata request with a huge array size, with or without its elements."""
    count = rng.choice((50_000, 2**31 - 1))
    names = b"\x00\x01x" * min(count, 50_000)
    header = struct.pack(">hhihi", 3, 1, 1, -1, count)
    return with_size(header + names)


GENERATORS: list[FrameGenerator] = [
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
    unsupported_version,
    unknown_api,
    frame_size_out_of_bounds,
    huge_array,
]


def valid(rng: random.Random) -> bytes:
    candidates = [api(key) for key in COORDINATED] if rng.random() < 0.5 else apis()
    selected = rng.choice(candidates)
    return request(rng, selected.key, rng.choice(list(selected.versions)))


def request(rng: random.Random, key: int, version: int) -> bytes:
    kind = api(key).request
    message = fill(kind, version, rng)
    if key in COORDINATED and rng.random() < 0.8:
        make_plausible(message, version, rng)
    out = Outgoing()
    client_id = rng.choice((None, "", "fuzz"))
    write_request_header(RequestHeader(key, version, rng.randrange(2**31), client_id), out)
    kind.writer(version)(message, out)
    return bytes(out)


def make_plausible(struct: Any, version: int, rng: random.Random) -> None:
    """Sets most fields to plausible values, so that the request is not rejected at once."""
    for field in layout(struct.__class__):
        value = getattr(struct, field.name)
        if isinstance(field.scalar, type):
            inner = value if field.is_array else [value]
            for item in inner or ():
                make_plausible(item, version, rng)
        elif version in field.versions and field.name in PLAUSIBLE and rng.random() < 0.9:
            selected = rng.choice(PLAUSIBLE[field.name])
            if selected is not None or field.is_nullable(version):
                setattr(struct, field.name, selected)


def with_size(body: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(body)) + body
