"""Java's .properties format, as java.util.Properties reads it.

`#` or `!` starts a comment line; `=`, `:` or white space ends a key; a line that ends in an odd
number of backslashes continues in the next line, whose leading white space is dropped; `\\t`,
`\\n`, `\\r`, `\\f` and `\\uXXXX` are escapes, any other escaped character is itself; the last of
several equal keys is used.
"""

from __future__ import annotations

from collections.abc import Iterator

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Returns the pairs of a .properties file.

    Raises ValueError, which names the line, for a malformed `\\uXXXX`.
    """
    return dict(_pair(number, line) for number, line in _logical_lines(text))


def line_numbers(text: str) -> dict[str, int]:
    """Returns the line of each key, the last one if there are several."""
    return {_pair(number, line)[0]: number for number, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Returns the lines with keys, and the numbers of the lines in which they start."""
    pending, start = "", 0
    # Only these end a line; str.splitlines() splits at others, which can be part of a value.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        stripped = line.lstrip(_BLANKS)
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        start = start if pending else number
        if _is_continued(stripped):
            pending += stripped[:-1]
        else:
            yield start, pending + stripped
            pending = ""
    if pending:
        yield start, pending


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _pair(number: int, line: str) -> tuple[str, str]:
    end = _key_end(line)
    value = line[end:].lstrip(_BLANKS)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANKS)
    try:
        return _unescape(line[:end]), _unescape(value)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def _key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                character = _unicode_escape(text[position : position + 4])
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        characters.append(character)
    # Characters beyond the basic plane are written as two escapes, a surrogate pair.
    return "".join(characters).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode_escape(digits: str) -> str:
    if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ValueError(f"\\u{digits} is not an escape of four hexadecimal digits")
    return chr(int(digits, 16))
