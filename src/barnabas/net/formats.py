"""In which version each API is spoken with one peer: the newest that both sides know."""

import errno
from struct import Struct

from barnabas.wire.apis import ApiKey, api, request_header_version
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.headers import read_response_header
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

_HEAD = Struct(">ihhih")
"""Size, API key and version, correlation id, length of the client id."""

_SIZE = Struct(">i")
_ID_AND_ERROR = Struct(">ih")
_NO_TAGS = b"\0"


class Format:
    """One version of one API, on the asking side."""

    __slots__ = ("_flexible", "_read", "_write", "key", "version")

    def __init__(self, key: int, version: int) -> None:
        self.key = key
        self.version = version
        self._flexible = request_header_version(key, version) > 1
        self._write = api(key).request.writer(version)
        self._read = api(key).response.reader(version)

    def encode(self, request: Message, correlation_id: int, client_id: bytes) -> Outgoing:
        """The request's frame; OSError if it says what this version has no place for."""
        out = Outgoing(
            _HEAD.pack(0, self.key, self.version, correlation_id, len(client_id)) + client_id
        )
        if self._flexible:
            out += _NO_TAGS
        try:
            self._write(request, out)
        except KafkaError as misfit:
            raise OSError(errno.EPROTONOSUPPORT, misfit.message) from misfit
        _SIZE.pack_into(out, 0, out.size_bytes - 4)
        return out

    def decode(self, frame: memoryview, correlation_id: int) -> Message:
        """The response in a frame; ProtocolViolation if it is none, or that to another request."""
        header, body = read_response_header(frame, self.key, self.version)
        if header.correlation_id != correlation_id:
            raise ProtocolViolation(
                f"request {correlation_id} was answered with the id {header.correlation_id}"
            )
        response, end = self._read(frame, body)
        if end != len(frame):
            raise ProtocolViolation(f"{len(frame) - end} bytes follow an answer")
        return response


class _ApiVersionsFormat(Format):
    """A peer that is older than the version asked for says so in version 0 (KIP-511)."""

    __slots__ = ()

    def decode(self, frame: memoryview, correlation_id: int) -> Message:
        if len(frame) >= _ID_AND_ERROR.size:
            _, error_code = _ID_AND_ERROR.unpack_from(frame)
            if error_code == ErrorCode.UNSUPPORTED_VERSION:
                return OLDEST_API_VERSIONS.decode(frame, correlation_id)
        return super().decode(frame, correlation_id)


OLDEST_API_VERSIONS = Format(ApiKey.API_VERSIONS, 0)
API_VERSIONS: Format = _ApiVersionsFormat(ApiKey.API_VERSIONS, 3)
"""How to ask what a peer speaks: every node that knows KRaft knows this version."""


class Formats:
    """What a peer has told of itself."""

    __slots__ = ("_formats", "_told")

    def __init__(self, told: ApiVersionsResponse) -> None:
        self._told: dict[int, ApiVersion] = {each.api_key: each for each in told.api_keys}
        self._formats: dict[tuple[int, int | None], Format] = {}

    def of(self, key: int, newest: int | None = None) -> Format:
        """How to ask for an API, in no later version than `newest` if that is given.

        OSError if the peer does not serve it in any version known.
        """
        known = self._formats.get((key, newest))
        if known is None:
            known = self._formats[key, newest] = Format(key, self._newest(key, newest))
        return known

    def version(self, key: int) -> int | None:
        """The version that an API is spoken in; None if it is not."""
        try:
            return self._newest(key)
        except OSError:
            return None

    def _newest(self, key: int, cap: int | None = None) -> int:
        ours, theirs = api(key).stable_versions, self._told.get(key)
        if theirs is None:
            raise OSError(errno.EPROTONOSUPPORT, f"it does not serve {api(key).name}")
        newest = min(ours.max, theirs.max_version)
        if cap is not None:
            newest = min(newest, cap)
        if newest < max(ours.min, theirs.min_version):
            raise OSError(
                errno.EPROTONOSUPPORT,
                f"it serves {api(key).name} {theirs.min_version}-{theirs.max_version}, "
                f"this node speaks {ours if cap is None else f'{ours.min}-{cap}'}",
            )
        return newest
