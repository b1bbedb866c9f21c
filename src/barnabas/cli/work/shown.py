"""Records as people and programs want to see them: by a format such as "%k %v", or as JSON."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from barnabas.cli.work.refused import Refused

PLAIN = r"%v\n"

_PARTS: dict[str, Callable[[Any], bytes]] = {
    "k": lambda message: message.key() or b"",
    "v": lambda message: message.value() or b"",
    "s": lambda message: message.value() or b"",
    "o": lambda message: b"%d" % message.offset(),
    "p": lambda message: b"%d" % message.partition(),
    "t": lambda message: message.topic().encode(),
    "T": lambda message: b"%d" % message.timestamp()[1],
    "h": lambda message: _headers(message),
    "K": lambda message: b"%d" % _size(message.key()),
    "S": lambda message: b"%d" % _size(message.value()),
    "%": lambda _: b"%",
}
"""The letters of kcat, and %v, which is its %s."""

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(?P<part>.?)|\\(?P<escape>.)|[^%\\]+|\\", re.DOTALL)


def by_format(text: str) -> Callable[[Any], bytes]:
    """Prints a message as the format says."""
    pieces: list[Callable[[Any], bytes]] = []
    for match in _PIECE.finditer(text):
        part, escape = match["part"], match["escape"]
        if part is None:
            literal = match[0].encode() if escape is None else _ESCAPES.get(escape)
            pieces.append(_always(match[0].encode() if literal is None else literal))
        elif part in _PARTS:
            pieces.append(_PARTS[part])
        else:
            known = " ".join(f"%{letter}" for letter in _PARTS)
            raise Refused(f"The format has %{part}, which is none of {known}")
    return lambda message: b"".join(piece(message) for piece in pieces)


def as_json(message: Any) -> bytes:
    """One line. What is no UTF-8 is given in base 64, as an object that says so."""
    told = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": _text(message.key()),
        "value": _text(message.value()),
        "headers": [[name, _text(value)] for name, value in message.headers() or []],
    }
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"


def _always(literal: bytes) -> Callable[[Any], bytes]:
    return lambda _: literal


def _headers(message: Any) -> bytes:
    pairs = message.headers() or []
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in pairs)


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _text(content: bytes | None) -> str | dict[str, str] | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
