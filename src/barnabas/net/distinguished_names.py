"""The subject of a certificate as text: RFC 2253, character for character as Java writes it.

ACLs and mapping rules of existing clusters were written for that text.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Name, NameAttribute

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attribute types that have a name in RFC 2253. Others are written as numbers, in hex."""

_ESCAPED = frozenset(',=+<>#;"\\')


def format_name(name: "Name") -> str:
    """Returns a name with its most specific part first: `CN=app,O=Castle,C=CZ`."""
    return ",".join("+".join(map(_format_attribute, part)) for part in reversed(name.rdns))


def _format_attribute(attribute: "NameAttribute[str | bytes]") -> str:
    identifier = attribute.oid.dotted_string
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or identifier}=#{_encode(attribute).hex()}"
    return f"{keyword}={_escape(attribute.value)}"


def _escape(value: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in value)
    escaped = escaped.replace("\0", "\\00")
    leading = len(escaped) - len(escaped.lstrip(" "))
    middle = escaped.strip(" ")
    if not middle:
        return "\\ " * len(escaped)
    trailing = len(escaped) - leading - len(middle)
    return "\\ " * leading + middle + "\\ " * trailing


def _encode(attribute: "NameAttribute[str | bytes]") -> bytes:
    """Returns the DER encoding of the value."""
    value = attribute.value
    content = (
        value
        if isinstance(value, bytes)
        else value.encode(_ENCODINGS.get(_tag(attribute), "utf-8"))
    )
    size = len(content)
    if size < 0x80:
        return bytes([_tag(attribute), size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([_tag(attribute), 0x80 | len(length)]) + length + content


def _tag(attribute: "NameAttribute[str | bytes]") -> int:
    tag: int = attribute._type.value
    return tag


_ENCODINGS = {0x1E: "utf-16-be", 0x1C: "utf-32-be", 0x14: "latin-1"}
