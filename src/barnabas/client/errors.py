"""What goes wrong, as `confluent_kafka` tells it: errors are values, exceptions carry them.

Codes from 0 up are the protocol's own (`barnabas.wire.errors.ErrorCode`), -1 is what a broker
could not explain, and those below are the client's: no broker has said them.
"""

from typing import NoReturn

from barnabas.wire.errors import ErrorCode


class KafkaError:
    """An error and its code; equal to that code, and to every error that has it."""

    __slots__ = ("_code", "_fatal", "_reason", "_retriable", "_txn_requires_abort")

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _DESTROY = -197
    _FAIL = -196
    _TRANSPORT = -195
    _CRIT_SYS_RESOURCE = -194
    _RESOLVE = -193
    _MSG_TIMED_OUT = -192
    _PARTITION_EOF = -191
    _UNKNOWN_PARTITION = -190
    _FS = -189
    _UNKNOWN_TOPIC = -188
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _QUEUE_FULL = -184
    _ISR_INSUFF = -183
    _NODE_UPDATE = -182
    _SSL = -181
    _WAIT_COORD = -180
    _UNKNOWN_GROUP = -179
    _IN_PROGRESS = -178
    _PREV_IN_PROGRESS = -177
    _EXISTING_SUBSCRIPTION = -176
    _ASSIGN_PARTITIONS = -175
    _REVOKE_PARTITIONS = -174
    _CONFLICT = -173
    _STATE = -172
    _UNKNOWN_PROTOCOL = -171
    _NOT_IMPLEMENTED = -170
    _AUTHENTICATION = -169
    _NO_OFFSET = -168
    _OUTDATED = -167
    _TIMED_OUT_QUEUE = -166
    _UNSUPPORTED_FEATURE = -165
    _WAIT_CACHE = -164
    _INTR = -163
    _KEY_SERIALIZATION = -162
    _VALUE_SERIALIZATION = -161
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _PARTIAL = -158
    _READ_ONLY = -157
    _NOENT = -156
    _UNDERFLOW = -155
    _INVALID_TYPE = -154
    _RETRY = -153
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _FATAL = -150
    _INCONSISTENT = -149
    _GAPLESS_GUARANTEE = -148
    _MAX_POLL_EXCEEDED = -147
    _UNKNOWN_BROKER = -146
    _NOT_CONFIGURED = -145
    _FENCED = -144
    _APPLICATION = -143
    _ASSIGNMENT_LOST = -142
    _NOOP = -141
    _AUTO_OFFSET_RESET = -140
    _LOG_TRUNCATION = -139
    _INVALID_DIFFERENT_RECORD = -138
    _DESTROY_BROKER = -137

    # Names that librdkafka gives to the protocol's codes, where it has its own.
    UNKNOWN = -1
    NO_ERROR = 0
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    NOT_LEADER_FOR_PARTITION = 6
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    TOPIC_EXCEPTION = 17

    def __init__(
        self,
        error: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = int(error)
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)

    def code(self) -> int:
        return self._code

    def name(self) -> str:
        """The code's name, as a constant of this class."""
        return _names().get(self._code, f"ERR_{self._code}?")

    def str(self) -> str:
        """What happened, for people."""
        return self._reason if self._reason is not None else _text(self._code)

    def fatal(self) -> bool:
        """Whether this client is of no use any more."""
        return self._fatal

    def retriable(self) -> bool:
        """Whether the same call may succeed when it is made again."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Whether the transaction has to be aborted, and may then be tried again."""
        return self._txn_requires_abort

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code == other._code
        return self._code == other if isinstance(other, int) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code < other._code
        return self._code < other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._code)

    def __repr__(self) -> "str":  # type: ignore[valid-type]
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'


class KafkaException(Exception):  # noqa: N818 - confluent_kafka's name for it
    """Raised where a call fails; `args[0]` is the KafkaError."""


def fail(code: int, reason: str) -> NoReturn:
    """Raise what the client itself has found wrong."""
    raise KafkaException(KafkaError(code, reason))


def told_by_broker(code: int, message: str | None = None) -> KafkaError:
    """The error that a response carries, with the broker's own words if it sent any."""
    known = ErrorCode.of(code)
    return KafkaError(code, message or None, retriable=known.retriable)


for _code in ErrorCode:
    if not hasattr(KafkaError, _code.name):
        setattr(KafkaError, _code.name, int(_code))


def _names() -> dict[int, str]:
    names: dict[int, str] = {}
    for name, value in vars(KafkaError).items():
        if type(value) is int and name not in names.values():
            names.setdefault(value, name)
    return names


def _text(code: int) -> str:
    name = _names().get(code, str(code)).strip("_").replace("_", " ").lower()
    return f"{'Broker' if code >= -1 else 'Local'}: {name}"
