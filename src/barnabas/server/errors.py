"""The one place where an exception becomes an answer with the protocol's error codes.

Responses say in different places that a request failed: at the top, or in every topic or
partition that the request named. Which it is can be read off the declarations of request and
response, so an error answer is put together from them; what they do not tell is said here.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any

from barnabas.log.failures import LogDirFailure
from barnabas.server.call import Call
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.codec.layout import FieldLayout, layout
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message, Struct

log = logging.getLogger(__name__)


def failure_of(failure: BaseException, api_name: str, call: Call) -> tuple[ErrorCode, str]:
    """The code and the message by which a client learns of an exception."""
    match failure:
        case KafkaError():
            return failure.code, failure.message
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR, str(failure)
        case TimeoutError() | asyncio.CancelledError():
            return ErrorCode.REQUEST_TIMED_OUT, str(failure)
    log.error(
        "%s v%d from %s (client %s) failed",
        api_name,
        call.api_version,
        call.host,
        call.client_id,
        exc_info=failure,
    )
    return ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(failure).__name__}: {failure}"


def error_response(
    request: Message, version: int, code: ErrorCode, message: str = ""
) -> Message | None:
    """The answer that tells `request` that it failed; None if it asked for no answer."""
    key = ApiKey(request.API_KEY)
    if key is ApiKey.PRODUCE and getattr(request, "acks", None) == 0:
        return None
    response = api(key).response()
    failure = _ErrorAnswer(version, code, message)
    failure.mark(response)
    if version < _SAID_AT_THE_TOP_FROM.get(key, _NEVER):
        failure.mirror(_flattened(request), response)
    if key is ApiKey.FETCH:
        response.session_id = request.session_id  # type: ignore[attr-defined]
    return response


_NEVER = 1 << 15

_SAID_AT_THE_TOP_FROM = {
    ApiKey.FETCH: 13,
    ApiKey.LEAVE_GROUP: 0,
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
"""From these versions on the top says it all, though the rest of the answer has error codes too."""

_NAMES_OF_ONE_THING = (
    ("name", "topic", "topic_name"),
    ("topic_id",),
    ("index", "partition", "partition_index", "partition_id"),
    ("resource_type",),
    ("resource_name",),
)
"""Fields that say what is spoken of; requests and responses may name them differently."""

_UNKNOWN_VALUES: dict[str, object] = {
    "base_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "producer_epoch": -1,
    "protocol_name": None,
    "records": b"",
}
"""What stands beside an error where the declared default would be a lie; null where it may."""


class _ErrorAnswer:
    """One error, to be written all over a response."""

    __slots__ = ("_code", "_message", "_version")

    def __init__(self, version: int, code: ErrorCode, message: str) -> None:
        self._version = version
        self._code = code
        self._message = message

    def mark(self, struct: Struct) -> bool:
        """Put the error into a struct, if it has a place for one."""
        fields = _fields(type(struct))
        error_code = _error_code(type(struct))
        if error_code is None or self._version not in error_code.versions:
            return False
        setattr(struct, error_code.name, self._code)
        if "error_message" in fields:
            struct.error_message = self._message or None  # type: ignore[attr-defined]
        for name, value in _UNKNOWN_VALUES.items():
            if name in fields and (value is not None or fields[name].is_nullable(self._version)):
                setattr(struct, name, value)
        return True

    def mirror(self, asked: Struct, answer: Struct) -> None:
        """For everything in the first list of `asked`, say in the matching list that it failed."""
        asked_list = self._first_list(asked, lambda _: True)
        answer_list = self._first_list(answer, _tells_of_errors)
        if asked_list is None or answer_list is None:
            return
        element = answer_list.scalar
        assert isinstance(element, type)
        for item in getattr(asked, asked_list.name) or ():
            told = element()
            self._name(item, told)
            if not self.mark(told):
                self.mirror(item, told)
            getattr(answer, answer_list.name).append(told)

    def _first_list(
        self, struct: Struct, wanted: Callable[[FieldLayout], bool]
    ) -> FieldLayout | None:
        for field in _fields(type(struct)).values():
            if field.is_array and self._version in field.versions and wanted(field):
                return field
        return None

    def _name(self, item: Any, told: Struct) -> None:
        """Say which topic, partition or resource it is; an item may be a bare name or number."""
        fields = _fields(type(told))
        for names in _NAMES_OF_ONE_THING:
            target = next((fields[name] for name in names if name in fields), None)
            if target is None:
                continue
            if isinstance(item, Struct):
                source = next((name for name in names if name in _fields(type(item))), None)
                value = getattr(item, source) if source else None
            else:
                value = item if isinstance(item, type(target.default)) else None
            if value is not None or target.is_nullable(self._version):
                setattr(told, target.name, value)


def _flattened(request: Message) -> Struct:
    """AlterReplicaLogDirs asks by directory and is answered by topic."""
    if request.API_KEY != ApiKey.ALTER_REPLICA_LOG_DIRS:
        return request
    from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDir

    directories = request.dirs  # type: ignore[attr-defined]
    return AlterReplicaLogDir(topics=list(chain.from_iterable(d.topics for d in directories)))


_LEADERS_ALONE_KNOW = frozenset(
    {ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER}
)


def is_from_a_standby(response: Message) -> bool:
    """Whether a controller says that another one is active, to be asked instead."""
    counts: defaultdict[int, int] = defaultdict(int)
    error_counter(type(response), counts)(response)
    is_for_leaders = response.API_KEY in _LEADERS_ALONE_KNOW
    elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_for_leaders else ErrorCode.NOT_CONTROLLER
    return ErrorCode.NOT_CONTROLLER in counts or elsewhere in counts


ErrorCounter = Callable[[Any], None]


def error_counter(response: type[Message], counts: defaultdict[int, int]) -> ErrorCounter:
    """What counts the error codes in answers of this type: at the top, and in its first list."""
    has_top = "error_code" in _fields(response)
    path, code_of = _path_to_errors(response)

    def count_top(answer: Any) -> None:
        counts[answer.error_code] += 1

    if not path:
        return count_top
    outermost, *inner = path

    def count_lists(answer: Any) -> None:
        if has_top:
            counts[answer.error_code] += 1
        structs = outermost(answer)
        for step in inner:
            structs = chain.from_iterable(map(step, structs))
        for struct in structs:
            counts[code_of(struct)] += 1

    return count_lists


def _path_to_errors(
    struct: type[Struct],
) -> tuple[list[Callable[[Any], Any]], Callable[[Any], int]]:
    """The lists that lead to error codes, one in the other, and where these stand in the last."""
    for field in _fields(struct).values():
        if field.is_array and _tells_of_errors(field):
            element = field.scalar
            assert isinstance(element, type)
            found = _error_code(element)
            deeper, code_of = ([], attrgetter(found.name)) if found else _path_to_errors(element)
            return [attrgetter(field.name), *deeper], code_of
    return [], attrgetter("error_code")


def _tells_of_errors(field: FieldLayout) -> bool:
    element = field.scalar
    if not field.is_array or not isinstance(element, type):
        return False
    return _error_code(element) is not None or any(map(_tells_of_errors, _fields(element).values()))


def _error_code(struct: type[Struct]) -> FieldLayout | None:
    """Where it says what went wrong with it; AddPartitionsToTxn has a name of its own for that."""
    fields = _fields(struct)
    return fields.get("error_code") or fields.get("partition_error_code")


@cache
def _fields(struct: type[Struct]) -> dict[str, FieldLayout]:
    return {field.name: field for field in layout(struct)}
