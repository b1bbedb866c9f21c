"""Creates the topics that a source writes to, as its `topic.creation.*` settings say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.admin import AdminClient, NewTopic
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.lru_cache import LruCache
from barnabas.connect.errors import ConnectError, InvalidConfigError
from barnabas.connect.execution.settings import listed, with_prefix
from barnabas.connect.transforms.java_regex import compile_java

PREFIX = "topic.creation."
DEFAULT = "default"
_OWN = ("include", "exclude", "partitions", "replication.factor")
_REQUEST_TIMEOUT_S = 60.0
_MAX_KNOWN = 4096


@dataclass(slots=True, frozen=True)
class TopicGroup:
    """Topics with the same settings. Patterns match whole names."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def matches(self, topic: str) -> bool:
        return any(compile_java(each).fullmatch(topic) for each in self.include) and not any(
            compile_java(each).fullmatch(topic) for each in self.exclude
        )


def topic_groups(config: Mapping[str, str], worker: Mapping[str, str]) -> tuple[TopicGroup, ...]:
    """Returns the groups in the order in which they are tried, or none if brokers create topics.

    Raises ConfigError.
    """
    if worker.get("topic.creation.enable", "true").strip().lower() != "true":
        return ()
    if f"{PREFIX}{DEFAULT}.replication.factor" not in config:
        return ()
    default = _group(DEFAULT, config, None)
    names = listed(config, f"{PREFIX}groups")
    return (*(_group(name, config, default) for name in names if name != DEFAULT), default)


def _group(name: str, config: Mapping[str, str], default: TopicGroup | None) -> TopicGroup:
    own = with_prefix(config, f"{PREFIX}{name}.")
    include = (".*",) if default is None else tuple(listed(own, "include"))
    return TopicGroup(
        name,
        include,
        tuple(listed(own, "exclude")),
        _number(own, name, "partitions", None if default is None else default.partitions),
        _number(
            own,
            name,
            "replication.factor",
            None if default is None else default.replication_factor,
        ),
        {setting: text for setting, text in own.items() if setting not in _OWN},
    )


def _number(own: Mapping[str, str], group: str, name: str, default: int | None) -> int:
    text = own.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise InvalidConfigError(
            f"Invalid value {text} for configuration {PREFIX}{group}.{name}: Not a number"
        ) from None


class TopicCreator:
    """Creates topics in a task, before the first record is written to them."""

    def __init__(self, conf: Mapping[str, str], groups: tuple[TopicGroup, ...]) -> None:
        self._conf = dict(conf)
        self._groups = groups

    def ensure(self, topic: str) -> None:
        """Raises ConnectError if the topic does not exist and cannot be created."""
        if self._groups:
            cluster = self._conf.get("bootstrap.servers", "")
            _existing.get_or_create((cluster, topic), lambda: self._create(topic))

    def _create(self, topic: str) -> bool:
        group = next(each for each in self._groups if each.matches(topic))
        new = NewTopic(
            topic, group.partitions, group.replication_factor, config=dict(group.configs)
        )
        with AdminClient(self._conf) as admin:
            try:
                if admin.list_topics(topic, _REQUEST_TIMEOUT_S).topics[topic].error is None:
                    return True
                admin.create_topics([new], request_timeout=_REQUEST_TIMEOUT_S)[topic].result()
            except KafkaException as error:
                if error_in(error) == KafkaError.TOPIC_ALREADY_EXISTS:
                    return True
                raise ConnectError(
                    f"Task failed to create new topic {topic} by the settings of the group "
                    f"{group.name}: {error_in(error).str()}"
                ) from error
        return True


_existing: LruCache[tuple[str, str], bool] = LruCache(_MAX_KNOWN)
