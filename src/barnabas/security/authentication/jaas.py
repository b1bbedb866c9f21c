"""JAAS configurations: login modules with their options.

A setting (`sasl.jaas.config`) has one module:

    org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";

A file has sections of them:

    KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
    };
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN = re.compile(
    r"""
      (?P<skipped> \s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/ )
    | (?P<quoted> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<word> [\w.$*-]+ )
    | (?P<sign> [={};] )
    """,
    re.VERBOSE | re.DOTALL,
)


class JaasError(ValueError):
    """A JAAS configuration that cannot be read. The message has no values: they are secrets."""


@dataclass(slots=True, frozen=True)
class JaasEntry:
    """One login module."""

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def module_name(self) -> str:
        """The name of the class without its package, such as PlainLoginModule."""
        return self.module.rpartition(".")[2]


def parse_jaas(text: str) -> JaasEntry:
    """Parses a setting. Raises JaasError unless it has exactly one login module."""
    tokens = _Tokens(text)
    entry = _parse_entry(tokens)
    if tokens.next_text is not None:
        raise JaasError("it has more than one login module")
    return entry


def parse_jaas_file(text: str) -> dict[str, list[JaasEntry]]:
    """Returns the login modules of a file by section, such as KafkaServer. Raises JaasError."""
    tokens = _Tokens(text)
    sections: dict[str, list[JaasEntry]] = {}
    while tokens.next_text is not None:
        name = tokens.take("word", "the name of a section")
        if name in sections:
            raise JaasError(f"section {name} is there twice")
        tokens.take_sign("{")
        entries = sections[name] = []
        while tokens.next_text != "}":
            entries.append(_parse_entry(tokens))
        tokens.take_sign("}")
        tokens.take_sign(";")
    return sections


def _parse_entry(tokens: "_Tokens") -> JaasEntry:
    module = tokens.take("word", "the class of a login module")
    flag = tokens.take("word", "required, requisite, sufficient or optional").lower()
    if flag not in _FLAGS:
        raise JaasError(f"after {module} comes one of {', '.join(sorted(_FLAGS))}")
    options: dict[str, str] = {}
    while tokens.next_text != ";":
        name = tokens.take("word", "the name of an option, or ;")
        tokens.take_sign("=")
        options[name] = tokens.take_value(name)
    tokens.take_sign(";")
    return JaasEntry(module, flag, options)


class _Tokens:
    """The tokens of a configuration, with the next one to be taken."""

    def __init__(self, text: str) -> None:
        self._tokens = _split(text)
        self._kind, self.next_text = next(self._tokens)

    def take(self, kind: str, expected: str) -> str:
        text = self.next_text
        if text is None:
            raise JaasError(f"it ends where {expected} is expected; does it end with ;?")
        if self._kind != kind:
            raise JaasError(f"{expected} is expected, and there is {self._shown()}")
        self._kind, self.next_text = next(self._tokens)
        return text

    def take_sign(self, sign: str) -> None:
        if self.next_text != sign:
            raise JaasError(f"{sign} is expected, and there is {self._shown()}")
        self.take("sign", sign)

    def take_value(self, option: str) -> str:
        if self._kind != "quoted":
            # Like Java, words need no quotes if they look like a name.
            word = self.take("word", f"the value of {option}, in quotes,")
            if not re.fullmatch(r"[A-Za-z_$][\w.$]*", word):
                raise JaasError(f"the value of {option} needs quotes")
            return word
        text = self.take("quoted", "")
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)

    def _shown(self) -> str:
        if self.next_text is None:
            return "nothing more"
        return "a quoted value" if self._kind == "quoted" else f"another {self._kind}"


def _split(text: str) -> Iterator[tuple[str, str | None]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise JaasError(f"character {position + 1} is not allowed; are all quotes closed?")
        position = found.end()
        if found.lastgroup != "skipped":
            assert found.lastgroup is not None
            yield found.lastgroup, found.group()
    while True:
        yield "end", None
