"""Derives the response that reports an error to a request.

Responses report a failed request in different positions: at the top level, or in every topic or
partition that the request named. The declarations of request and response tell which, so the
error response is derived from them; what they do not tell is listed here.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from barnabas.wire.apis import ApiKey, api
from barnabas.wire.codec.layout import FieldLayout, layout
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.schema import Message, Struct


def error_response(
    request: Any, version: int, code: ErrorCode, message: str = ""
) -> Message | None:
    """Returns the response that reports the error, or None if the request expects no response."""
    key = ApiKey(request.API_KEY)
    if key is ApiKey.PRODUCE and getattr(request, "acks", None) == 0:
        return None
    response = api(key).response()
    error = _ErrorResponse(version, code, message)
    error.mark(response)
    if version < _TOP_LEVEL_ONLY_FROM.get(key, _NEVER):
        error.mirror(_flattened(request), response)
    if isinstance(response, FetchResponse):
        response.session_id = request.session_id
    return response


_NEVER = 1 << 15

_TOP_LEVEL_ONLY_FROM = {
    ApiKey.FETCH: 13,
    ApiKey.LEAVE_GROUP: 0,
    ApiKey.ADD_PARTITIONS_TO_TXN: 4,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 0,
    ApiKey.VOTE: 0,
    ApiKey.BEGIN_QUORUM_EPOCH: 0,
    ApiKey.END_QUORUM_EPOCH: 0,
    ApiKey.DESCRIBE_QUORUM: 0,
    ApiKey.ALTER_PARTITION: 0,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.FETCH_SNAPSHOT: 0,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: 0,
}
"""From these versions on only the top level reports the error, although entries have codes too."""

_IDENTIFYING_FIELDS = (
    ("name", "topic", "topic_name", "user"),
    ("topic_id",),
    ("index", "partition", "partition_index", "partition_id"),
    ("resource_type",),
    ("resource_name",),
    ("group_id",),
    ("transactional_id",),
    ("entity",),
)
"""Fields that identify an entry; requests and responses may name them differently."""

_VALUES_BESIDE_AN_ERROR: dict[str, object] = {
    "base_offset": -1,
    "entries": None,
    "high_watermark": -1,
    "low_watermark": -1,
    "producer_epoch": -1,
    "protocol_name": None,
    "records": b"",
}
"""Values of other fields beside an error, where the declared default would be wrong.

None applies only in versions in which the field is nullable.
"""


class _ErrorResponse:
    """Writes one error into every entry of a response."""

    __slots__ = ("_code", "_message", "_version")

    def __init__(self, version: int, code: ErrorCode, message: str) -> None:
        self._version = version
        self._code = code
        self._message = message

    def mark(self, struct: Any) -> bool:
        """Sets the error in a struct. Returns False if this version has no error code there."""
        struct_type: type[Struct] = type(struct)
        fields = _fields(struct_type)
        error_code = _error_code(struct_type)
        if error_code is None or self._version not in error_code.versions:
            return False
        setattr(struct, error_code.name, self._code)
        if "error_message" in fields:
            struct.error_message = self._message or None
        for name, value in _VALUES_BESIDE_AN_ERROR.items():
            if name in fields and (value is not None or fields[name].is_nullable(self._version)):
                setattr(struct, name, value)
        return True

    def mirror(self, requested: Struct, response: Struct) -> None:
        """Adds a failed entry to the response for every entry in the first list of `requested`."""
        requested_list = self._first_list(requested, lambda _: True)
        response_list = self._first_list(response, _has_error_codes)
        if requested_list is None or response_list is None:
            return
        element = response_list.scalar
        assert isinstance(element, type)
        for item in getattr(requested, requested_list.name) or ():
            entry = element()
            self._identify(item, entry)
            if not self.mark(entry):
                self.mirror(item, entry)
            getattr(response, response_list.name).append(entry)

    def _first_list(
        self, struct: Struct, is_match: Callable[[FieldLayout], bool]
    ) -> FieldLayout | None:
        for field in _fields(type(struct)).values():
            if field.is_array and self._version in field.versions and is_match(field):
                return field
        return None

    def _identify(self, item: Any, entry: Struct) -> None:
        """Copies topic, partition or resource; `item` may be a bare name or number."""
        fields = _fields(type(entry))
        for names in _IDENTIFYING_FIELDS:
            target = next((fields[name] for name in names if name in fields), None)
            if target is None:
                continue
            if isinstance(item, Struct):
                source = next((name for name in names if name in _fields(type(item))), None)
                value = getattr(item, source) if source else None
            else:
                value = item if isinstance(item, type(target.default)) else None
            if value is not None or target.is_nullable(self._version):
                setattr(entry, target.name, value)


def _flattened(request: Any) -> Any:
    """Returns a request with the entries that its response lists.

    AlterReplicaLogDirs requests list directories, and its responses topics;
    AlterUserScramCredentials requests have two lists of changes, and its responses one of users.
    """
    if request.API_KEY == ApiKey.ALTER_REPLICA_LOG_DIRS:
        from barnabas.wire.messages.log_dirs import AlterReplicaLogDir

        directories = request.dirs
        return AlterReplicaLogDir(topics=list(chain.from_iterable(d.topics for d in directories)))
    if request.API_KEY == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        from barnabas.wire.messages.scram import DescribeUserScramCredentialsRequest, UserName

        names = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
        return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    return request


_SERVED_BY_THE_QUORUM_LEADER = frozenset(
    {ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER}
)


def is_not_controller(response: Message) -> bool:
    """Returns whether a response says that another controller is the active one."""
    counts: defaultdict[int, int] = defaultdict(int)
    error_counter(type(response), counts)(response)
    is_for_the_leader = response.API_KEY in _SERVED_BY_THE_QUORUM_LEADER
    elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_for_the_leader else ErrorCode.NOT_CONTROLLER
    return ErrorCode.NOT_CONTROLLER in counts or elsewhere in counts


ErrorCounter = Callable[[Any], None]


def error_counter(response_type: type[Message], counts: defaultdict[int, int]) -> ErrorCounter:
    """Returns a function that counts the error codes in responses of this type.

    It counts the code at the top level and those in the first list with codes.
    """
    has_top = "error_code" in _fields(response_type)
    path, code_of = _path_to_errors(response_type)

    def count_top(response: Any) -> None:
        counts[response.error_code] += 1

    if not path:
        return count_top
    outermost, *inner = path

    def count_lists(response: Any) -> None:
        if has_top:
            counts[response.error_code] += 1
        structs = outermost(response)
        for step in inner:
            structs = chain.from_iterable(map(step, structs))
        for struct in structs:
            counts[code_of(struct)] += 1

    return count_lists


def _path_to_errors(
    struct: type[Struct],
) -> tuple[list[Callable[[Any], Any]], Callable[[Any], int]]:
    """Returns getters of the nested lists down to the error codes, and the getter of a code."""
    for field in _fields(struct).values():
        if field.is_array and _has_error_codes(field):
            element = field.scalar
            assert isinstance(element, type)
            code = _error_code(element)
            deeper, code_of = ([], attrgetter(code.name)) if code else _path_to_errors(element)
            return [attrgetter(field.name), *deeper], code_of
    return [], attrgetter("error_code")


def _has_error_codes(field: FieldLayout) -> bool:
    element = field.scalar
    if not field.is_array or not isinstance(element, type):
        return False
    return _error_code(element) is not None or any(map(_has_error_codes, _fields(element).values()))


def _error_code(struct: type[Struct]) -> FieldLayout | None:
    """Returns the field of the error code; AddPartitionsToTxn has its own name for it."""
    fields = _fields(struct)
    return fields.get("error_code") or fields.get("partition_error_code")


@cache
def _fields(struct: type[Struct]) -> dict[str, FieldLayout]:
    return {field.name: field for field in layout(struct)}
