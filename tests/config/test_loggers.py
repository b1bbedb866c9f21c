"""Python's loggers with Kafka's level names."""

import logging
from collections.abc import Iterator

import pytest

from barnabas.config import InvalidConfig, InvalidConfigRequest
from barnabas.config.loggers import logger_levels, set_logger_levels, validate_logger_levels

NAME = "barnabas.test.loggers"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def test_a_logger_without_a_level_has_the_level_of_its_parent() -> None:
    levels = logger_levels()
    assert levels[NAME] == levels["root"]


@pytest.mark.parametrize("level", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"])
def test_a_level_that_is_set_is_reported(level: str) -> None:
    set_logger_levels({NAME: level})
    assert logger_levels()[NAME] == level
    set_logger_levels({NAME: None})
    assert logger_levels()[NAME] == logger_levels()["root"]


def test_a_level_that_kafka_does_not_have_is_reported_as_the_next_lower_one(
    logger: logging.Logger,
) -> None:
    logger.setLevel(25)
    assert logger_levels()[NAME] == "INFO"
    logger.setLevel(1)
    assert logger_levels()[NAME] == "TRACE"


def test_levels_and_loggers_must_exist() -> None:
    validate_logger_levels({NAME: "DEBUG"})
    validate_logger_levels({NAME: None})
    with pytest.raises(InvalidConfig, match="to debug as it is not a supported log level"):
        validate_logger_levels({NAME: "debug"})
    with pytest.raises(InvalidConfig, match=r"Logger no\.such\.logger does not exist!"):
        validate_logger_levels({"no.such.logger": "DEBUG"})
    with pytest.raises(InvalidConfigRequest, match="root logger"):
        validate_logger_levels({"root": None})
