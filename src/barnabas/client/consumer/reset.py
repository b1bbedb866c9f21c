"""Where to begin when a group has no offset, or one that does not exist: auto.offset.reset."""

import re
from dataclasses import dataclass

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_BY_DURATION = "by_duration:"


@dataclass(slots=True, frozen=True)
class Reset:
    """The policy: earliest, latest, none, or by_duration with a duration as ISO 8601 has it."""

    policy: str

    def timestamp(self, now_s: float) -> int | None:
        """The time to ask ListOffsets for; None if the user has to say himself."""
        match self.policy:
            case "earliest":
                return -2
            case "latest":
                return -1
            case "none":
                return None
            case _:
                return int(1000 * (now_s - _seconds(self.policy.removeprefix(_BY_DURATION))))


def _seconds(duration: str) -> float:
    parsed = _DURATION.fullmatch(duration)
    if parsed is None:
        raise ValueError(f"auto.offset.reset by_duration takes PnDTnHnMn.nS, not {duration!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in parsed.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
