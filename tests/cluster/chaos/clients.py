"""The client libraries of a run: the same code with changed imports."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.cluster.chaos import readers, writers
from tests.confluent_modules import load_with_barnabas_imports

_HERE = Path(__file__).parent
_OURS = "tests.cluster.chaos.ours_"


@dataclass(slots=True, frozen=True)
class Clients:
    """The modules `writers` and `readers`, for confluent_kafka or with changed imports."""

    name: str
    writers: ModuleType
    readers: ModuleType

    def __str__(self) -> str:
        return self.name


def by_name(name: str) -> Clients:
    return {"confluent-kafka": confluent, "barnabas": barnabas}[name]()


def confluent() -> Clients:
    return Clients("confluent-kafka", writers, readers)


def barnabas() -> Clients:
    barnabas_writers = load_with_barnabas_imports(_HERE / "writers.py", f"{_OURS}writers")
    siblings = {"tests.cluster.chaos.writers": f"{_OURS}writers"}
    return Clients(
        "barnabas",
        barnabas_writers,
        load_with_barnabas_imports(_HERE / "readers.py", f"{_OURS}readers", siblings),
    )
