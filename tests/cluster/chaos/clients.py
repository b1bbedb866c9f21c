"""The libraries that a run's clients may be of: the same code, with another import."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.cluster.chaos import readers, writers
from tests.import_changed import load_changed

_HERE = Path(__file__).parent
_OURS = "tests.cluster.chaos.ours_"


@dataclass(slots=True, frozen=True)
class Clients:
    """The modules `writers` and `readers`, as written or with their imports changed."""

    name: str
    writers: ModuleType
    readers: ModuleType

    def __str__(self) -> str:
        return self.name


def by_name(name: str) -> Clients:
    return {"confluent-kafka": confluent, "barnabas": ours}[name]()


def confluent() -> Clients:
    return Clients("confluent-kafka", writers, readers)


def ours() -> Clients:
    changed = load_changed(_HERE / "writers.py", f"{_OURS}writers")
    siblings = {"tests.cluster.chaos.writers": f"{_OURS}writers"}
    return Clients(
        "barnabas", changed, load_changed(_HERE / "readers.py", f"{_OURS}readers", siblings)
    )
