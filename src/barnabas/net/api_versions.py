"""The version of each API that is used with one peer: the newest that both sides support."""

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


class ApiCodec:
    """Encodes requests and decodes responses of one version of one API."""

    __slots__ = ("_flexible", "_read", "_write", "key", "version")

    def __init__(self, key: int, version: int) -> None:
        self.key = key
        self.version = version
        self._flexible = request_header_version(key, version) > 1
        self._write = api(key).request.writer(version)
        self._read = api(key).response.reader(version)

    def encode(self, request: Message, correlation_id: int, client_id: bytes) -> Outgoing:
        """Returns the request's frame. Raises OSError if this version cannot carry a field."""
        out = Outgoing(
            _HEAD.pack(0, self.key, self.version, correlation_id, len(client_id)) + client_id
        )
        if self._flexible:
            out += _NO_TAGS
        try:
            self._write(request, out)
        except KafkaError as error:
            raise OSError(errno.EPROTONOSUPPORT, error.message) from error
        _SIZE.pack_into(out, 0, out.size_bytes - 4)
        return out

    def decode(self, frame: memoryview, correlation_id: int) -> Message:
        """Returns the response in a frame. Raises ProtocolViolation if it is not the expected."""
        header, body = read_response_header(frame, self.key, self.version)
        if header.correlation_id != correlation_id:
            raise ProtocolViolation(
                f"the response to request {correlation_id} has the correlation id "
                f"{header.correlation_id}"
            )
        response, end = self._read(frame, body)
        if end != len(frame):
            raise ProtocolViolation(f"{len(frame) - end} bytes follow the response")
        return response


class _ApiVersionsCodec(ApiCodec):
    """A peer that does not support the version responds in version 0 (KIP-511)."""

    __slots__ = ()

    def decode(self, frame: memoryview, correlation_id: int) -> Message:
        if len(frame) >= _ID_AND_ERROR.size:
            _, error_code = _ID_AND_ERROR.unpack_from(frame)
            if error_code == ErrorCode.UNSUPPORTED_VERSION:
                return OLDEST_API_VERSIONS.decode(frame, correlation_id)
        return super().decode(frame, correlation_id)


OLDEST_API_VERSIONS = ApiCodec(ApiKey.API_VERSIONS, 0)
API_VERSIONS: ApiCodec = _ApiVersionsCodec(ApiKey.API_VERSIONS, 3)
"""The ApiVersions version to start with: every node that supports KRaft supports it."""


class NegotiatedVersions:
    """The versions that a peer supports, from its ApiVersions response."""

    __slots__ = ("_codecs", "_supported")

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._supported: dict[int, ApiVersion] = {api.api_key: api for api in response.api_keys}
        self._codecs: dict[tuple[int, int | None], ApiCodec] = {}

    def codec(self, key: int, max_version: int | None = None) -> ApiCodec:
        """Returns the codec of an API, in no later version than `max_version`.

        Raises OSError if the two sides have no version in common.
        """
        codec = self._codecs.get((key, max_version))
        if codec is None:
            codec = ApiCodec(key, self._negotiate(key, max_version))
            self._codecs[key, max_version] = codec
        return codec

    def version(self, key: int) -> int | None:
        """Returns the version in use for an API, or None if the peer does not serve it."""
        try:
            return self._negotiate(key)
        except OSError:
            return None

    def _negotiate(self, key: int, max_version: int | None = None) -> int:
        ours, theirs = api(key).stable_versions, self._supported.get(key)
        if theirs is None:
            raise OSError(errno.EPROTONOSUPPORT, self._missing(api(key).name))
        newest = min(ours.max, theirs.max_version)
        if max_version is not None:
            newest = min(newest, max_version)
        if newest < max(ours.min, theirs.min_version):
            raise OSError(
                errno.EPROTONOSUPPORT,
                f"it serves {api(key).name} {theirs.min_version}-{theirs.max_version}, "
                f"this node supports {ours.min}-{ours.max if max_version is None else max_version}",
            )
        return newest

    def _missing(self, name: str) -> str:
        """Returns the text of the error if the peer does not serve an API."""
        if ApiKey.VOTE in self._supported and ApiKey.METADATA not in self._supported:
            return f"it is a controller, which does not serve {name}: use the address of a broker"
        return f"it does not serve {name}"
