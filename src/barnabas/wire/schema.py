"""Declarations of messages: a class whose annotations are its wire types.

    class FetchTopic(Struct):
        topic: string = field("0-12", ignorable=True)
        topic_id: uuid = field("13+", ignorable=True)
        partitions: list[FetchPartition] = field()

A field exists in the versions it names, in all versions if it names none. `| None` makes it
nullable, in all its versions unless `nullable` restricts them. Declaring costs almost nothing:
constructors, readers and writers are compiled when first used (see `barnabas.wire.codec`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, ClassVar, Final, Self, TypeAlias, dataclass_transform

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.outgoing import Outgoing, Records
from barnabas.wire.primitives import Buffer

int8: TypeAlias = int
int16: TypeAlias = int
uint16: TypeAlias = int
int32: TypeAlias = int
uint32: TypeAlias = int
int64: TypeAlias = int
float64: TypeAlias = float
string: TypeAlias = str
uuid: TypeAlias = bytes


class Zero:
    """The default of a field that declares none: zero, empty or false, by its type."""


ZERO_OF_TYPE: Final = Zero()


def field(
    versions: str = "0+",
    *,
    nullable: str = "0+",
    tag: int | None = None,
    default: int | str | bool | Zero | None = ZERO_OF_TYPE,
    ignorable: bool = False,
) -> Any:
    """Declares a field.

    `tag` makes it a tagged field, which is written only if it differs from its default.
    `ignorable` lets a writer drop a value in versions without the field; any other field must
    have its default there.
    """
    return Field(versions, nullable, tag, default, ignorable)


class Field:
    """The arguments of `field` and the annotation, unparsed."""

    __slots__ = ("annotation", "default", "ignorable", "nullable", "tag", "versions")

    annotation: str

    def __init__(
        self, versions: str, nullable: str, tag: int | None, default: object, ignorable: bool
    ) -> None:
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.default = default
        self.ignorable = ignorable


class VersionRange:
    """Versions `min` to `max`, both included."""

    __slots__ = ("max", "min")

    HIGHEST: ClassVar[int] = 32767

    def __init__(self, lowest: int, highest: int) -> None:
        self.min = lowest
        self.max = highest

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Parses `3`, `3-13` or `3+`."""
        if text.endswith("+"):
            return cls(int(text[:-1]), cls.HIGHEST)
        lowest, _, highest = text.partition("-")
        return cls(int(lowest), int(highest or lowest))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.min, self.max + 1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionRange):
            return NotImplemented
        return self.min == other.min and self.max == other.max

    def __hash__(self) -> int:
        return hash((self.min, self.max))

    def __repr__(self) -> str:
        return f"{self.min}-{self.max}"


class StructType(type):
    """Turns declared fields into slots."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **settings: Any
    ) -> StructType:
        declared = {key: value for key, value in namespace.items() if type(value) is Field}
        for key, value in declared.items():
            value.annotation = namespace["__annotations__"][key]
            del namespace[key]
        namespace.setdefault("__slots__", tuple(declared))
        if declared:
            namespace["DECLARED"] = declared
        return super().__new__(mcs, name, bases, namespace, **settings)


@dataclass_transform(kw_only_default=True)
class Struct(metaclass=StructType):
    """A group of fields inside messages.

    `unknown_tags` keeps tagged fields that a newer peer sent, so that rewriting loses nothing.
    """

    __slots__ = ("unknown_tags",)

    DECLARED: ClassVar[dict[str, Field]] = {}

    unknown_tags: dict[int, bytes] | None

    def __init__(self, **values: Any) -> None:
        # Called once per class: the compiled constructor replaces this method.
        from barnabas.wire.codec import compile_constructor

        compile_constructor(type(self))
        type(self).__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or other.DECLARED is not self.DECLARED:
            return NotImplemented
        values = attrgetter("unknown_tags", *self.DECLARED)
        return bool(values(self) == values(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = [*self.DECLARED, *(["unknown_tags"] if self.unknown_tags else [])]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


class Message(Struct):
    """A request, a response, or a record: a struct with its own versions.

    Declared with its `versions`, the version from which it is `flexible` (compact types and
    tagged fields; "0+" if it says nothing), the `api_key` that names it, which for a record is its
    type, and for a request the `listeners` that Kafka serves it on. `latest_unstable` marks a last
    version that may still change.
    """

    __slots__ = ()

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[VersionRange]
    STABLE_VERSIONS: ClassVar[VersionRange]
    FLEXIBLE_FROM: ClassVar[int | None]
    LISTENERS: ClassVar[tuple[str, ...]]
    _readers: ClassVar[dict[int, Callable[[Buffer, int], tuple[Any, int]]]]
    _writers: ClassVar[dict[int, Callable[[Any, Outgoing], None]]]

    def __init_subclass__(
        cls,
        *,
        versions: str,
        api_key: int = -1,
        flexible: str = "0+",
        latest_unstable: bool = False,
        listeners: str = "",
    ) -> None:
        cls.API_KEY = api_key
        cls.VERSIONS = VersionRange.parse(versions)
        cls.STABLE_VERSIONS = VersionRange(
            cls.VERSIONS.min, cls.VERSIONS.max - 1 if latest_unstable else cls.VERSIONS.max
        )
        cls.FLEXIBLE_FROM = None if flexible == "none" else int(flexible.removesuffix("+"))
        cls.LISTENERS = tuple(listeners.split()) if listeners else ()
        cls._readers = {}
        cls._writers = {}

    @classmethod
    def read(cls, buffer: Buffer, version: int, position: int = 0) -> tuple[Self, int]:
        """Reads one message. Returns it with the position after it."""
        return cls.reader(version)(buffer, position)

    @classmethod
    def read_exactly(cls, buffer: Buffer, version: int, position: int = 0) -> Self:
        """Reads one message that must end at the end of the buffer."""
        message, end = cls.reader(version)(buffer, position)
        if end != len(buffer):
            raise ProtocolViolation(
                f"{len(buffer) - end} bytes follow a {cls.__name__} version {version}"
            )
        return message

    def write(self, version: int) -> bytes:
        """Returns the message as bytes. A message with regions needs `writer` instead."""
        out = Outgoing()
        self.writer(version)(self, out)
        if out.regions:
            raise TypeError(f"{type(self).__name__} holds regions, which bytes cannot")
        return bytes(out)

    @classmethod
    def reader(cls, version: int) -> Callable[[Buffer, int], tuple[Self, int]]:
        """Returns the function that reads this version. Compiled once."""
        reader = cls._readers.get(version)
        if reader is None:
            from barnabas.wire.codec import compile_reader

            cls._require(version)
            reader = cls._readers[version] = compile_reader(cls, version)
        return reader

    @classmethod
    def writer(cls, version: int) -> Callable[[Self, Outgoing], None]:
        """Returns the function that appends this version to outgoing bytes. Compiled once."""
        writer = cls._writers.get(version)
        if writer is None:
            from barnabas.wire.codec import compile_writer

            cls._require(version)
            writer = cls._writers[version] = compile_writer(cls, version)
        return writer

    @classmethod
    def _require(cls, version: int) -> None:
        if version not in cls.VERSIONS:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{cls.__name__} is supported in versions {cls.VERSIONS}, not {version}",
            )


__all__ = [
    "Buffer",
    "Field",
    "Message",
    "Records",
    "Struct",
    "VersionRange",
    "field",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "string",
    "uint16",
    "uint32",
    "uuid",
]
