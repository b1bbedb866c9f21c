"""Java's regular expressions and replacements, as Python's.

Most of the syntax is the same. What differs is translated: `\\p{...}`, `\\Q...\\E`, `(?<name>...)`,
`\\z`, nested character classes and a few escapes. What Python has no equivalent of is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from barnabas.connect.errors import DataError, InvalidConfigError


class InvalidReplacementError(DataError):
    """A replacement does not fit the regular expression."""

    java_class = "java.lang.IllegalArgumentException"


class NoSuchGroupError(InvalidReplacementError):
    java_class = "java.lang.IndexOutOfBoundsException"


@lru_cache(maxsize=256)
def compile_java(pattern: str) -> re.Pattern[str]:
    """Returns the pattern, whose classes are ASCII as Java's are. Raises ConfigError."""
    translated = _Translation(pattern).run()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:
        raise InvalidConfigError(f"{error} in the regular expression {pattern}") from None


def replace_first(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """Replaces the first match in the text, as Java's `Matcher.replaceFirst`.

    Raises InvalidReplacementError.
    """
    match = pattern.search(text)
    if match is None:
        return text
    return text[: match.start()] + _expanded(replacement, match) + text[match.end() :]


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """Returns the replacement with `$1`, `${name}` and `\\x` replaced."""
    parts: list[str] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\":
            if position == len(replacement):
                raise InvalidReplacementError("character to be escaped is missing")
            parts.append(replacement[position])
            position += 1
        elif character == "$":
            text, position = _group(replacement, position, match)
            parts.append(text)
        else:
            parts.append(character)
    return "".join(parts)


def _group(replacement: str, position: int, match: re.Match[str]) -> tuple[str, int]:
    """Returns the text of the group that is named after `$`, and where the rest begins."""
    if position == len(replacement):
        raise InvalidReplacementError("Illegal group reference: group index is missing")
    if replacement[position] == "{":
        name = re.compile(r"\{([A-Za-z0-9]+)\}").match(replacement, position)
        if name is None:
            raise InvalidReplacementError("named capturing group is missing trailing '}'")
        if name[1] not in match.re.groupindex:
            raise InvalidReplacementError(f"No group with name {{{name[1]}}}")
        return match[name[1]] or "", name.end()
    if replacement[position] not in "0123456789":
        raise InvalidReplacementError("Illegal group reference")
    number = int(replacement[position])
    if number > match.re.groups:
        raise NoSuchGroupError(f"No group {number}")
    position += 1
    while position < len(replacement) and replacement[position] in "0123456789":
        longer = 10 * number + int(replacement[position])
        if longer > match.re.groups:
            break
        number, position = longer, position + 1
    return match[number] or "", position


_PROPERTIES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
"""Java's POSIX classes, as ranges."""

_ESCAPES = {
    "e": r"\x1b",
    "h": r"[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "H": r"[^ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "v": r"[\n\x0b\f\r\x85\u2028\u2029]",
    "V": r"[^\n\x0b\f\r\x85\u2028\u2029]",
    "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
    "z": r"\Z",
    "Z": r"(?=\n?\Z)",
}
_SAME = frozenset("dDsSwWbBAtnfra")


@dataclass(slots=True)
class _Translation:
    pattern: str
    position: int = 0

    def run(self) -> str:
        parts = []
        while self.position < len(self.pattern):
            match self.pattern[self.position]:
                case "\\":
                    parts.append(self._escape())
                case "[":
                    parts.append(self._character_class())
                case "(":
                    parts.append(self._opening())
                case character:
                    self.position += 1
                    parts.append(character)
        return "".join(parts)

    def _opening(self) -> str:
        """Python writes the name of a group as (?P<name>...)."""
        named = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>").match(self.pattern, self.position)
        if named is None:
            self.position += 1
            return "("
        self.position = named.end()
        return f"(?P<{named[1]}>"

    def _escape(self) -> str:
        code = self._code()
        if code is not None:
            return re.escape(code)
        letter = self._next_escaped()
        if letter == "Q":
            return re.escape(self._quoted())
        if letter in "pP":
            return f"[{'^' if letter == 'P' else ''}{self._property()}]"
        if letter == "k":
            name = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.pattern, self.position)
            if name is None:
                raise self._error("\\k is not followed by '<' for named capturing group")
            self.position = name.end()
            return f"(?P={name[1]})"
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter in _SAME or letter in "123456789":
            return f"\\{letter}"
        if letter.isalnum():
            raise self._error(f"\\{letter} is not supported")
        return re.escape(letter)

    def _next_escaped(self) -> str:
        if self.position + 1 >= len(self.pattern):
            raise self._error("Unexpected internal error: nothing follows \\")
        letter = self.pattern[self.position + 1]
        self.position += 2
        return letter

    def _code(self) -> str | None:
        """Returns the character of `\\x41`, `\\x{41}`, `\\u0041`, `\\0101` or `\\cA`, or None."""
        found = _CODE.match(self.pattern, self.position)
        if found is None:
            return None
        self.position = found.end()
        hexadecimal = found["hex"] or found["braces"] or found["unicode"]
        if hexadecimal is not None:
            return chr(int(hexadecimal, 16))
        return chr(int(found["octal"], 8)) if found["octal"] else chr(ord(found["control"]) ^ 64)

    def _quoted(self) -> str:
        end = self.pattern.find("\\E", self.position)
        text = self.pattern[self.position :] if end < 0 else self.pattern[self.position : end]
        self.position = len(self.pattern) if end < 0 else end + 2
        return text

    def _property(self) -> str:
        """Returns the ranges of a class that is named after `\\p`."""
        named = re.compile(r"\{([^}]*)\}").match(self.pattern, self.position)
        if named is None or named[1].removeprefix("Is") not in _PROPERTIES:
            name = self.pattern[self.position : self.position + 1] if named is None else named[1]
            raise self._error(f"The character class \\p{{{name}}} is not supported")
        self.position = named.end()
        return _PROPERTIES[named[1].removeprefix("Is")]

    def _character_class(self) -> str:
        """Returns a class. Unions become alternatives of it, and intersections lookaheads."""
        self.position += 1
        is_negated = self.pattern.startswith("^", self.position)
        self.position += is_negated
        operands: list[str] = []
        ranges: list[str] = []
        nested: list[str] = []
        while True:
            if self.position >= len(self.pattern):
                raise self._error("Unclosed character class")
            if self.pattern.startswith("&&", self.position):
                self.position += 2
                operands.append(_union(ranges, nested))
                ranges, nested = [], []
                continue
            character = self.pattern[self.position]
            if character == "]" and (ranges or nested or operands):
                self.position += 1
                break
            if character == "[":
                nested.append(self._character_class())
            elif character == "\\":
                ranges.append(self._escape_in_class(nested))
            else:
                self.position += 1
                ranges.append(character if character == "-" else re.escape(character))
        if not operands and not nested:
            return f"[{'^' if is_negated else ''}{''.join(ranges)}]"
        operands.append(_union(ranges, nested))
        whole = "".join(f"(?={operand})" for operand in operands[:-1]) + operands[-1]
        return f"(?:(?!{whole})[\\s\\S])" if is_negated else f"(?:{whole})"

    def _escape_in_class(self, nested: list[str]) -> str:
        code = self._code()
        if code is not None:
            return re.escape(code)
        letter = self._next_escaped()
        if letter == "p":
            return self._property()
        if letter == "Q":
            return re.escape(self._quoted())
        if letter == "P":
            nested.append(f"[^{self._property()}]")
            return ""
        if letter in "hHvV":
            nested.append(_ESCAPES[letter])
            return ""
        if letter == "e":
            return _ESCAPES[letter]
        if letter in "dDsSwWtnfra":
            return f"\\{letter}"
        if letter.isalnum():
            raise self._error(f"\\{letter} is not supported in a character class")
        return re.escape(letter)

    def _error(self, reason: str) -> InvalidConfigError:
        return InvalidConfigError(f"{reason} near index {self.position} in {self.pattern}")


_CODE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{2})|x\{(?P<braces>[0-9a-fA-F]{1,6})\}|u(?P<unicode>[0-9a-fA-F]{4})"
    r"|0(?P<octal>[0-3]?[0-7]{1,2})|c(?P<control>[\x00-\x7f]))"
)


def _union(ranges: list[str], nested: list[str]) -> str:
    classes = [f"[{''.join(ranges)}]"] if any(ranges) else []
    alternatives = [*classes, *nested]
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"
