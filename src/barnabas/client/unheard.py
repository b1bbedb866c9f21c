"""Where nobody listens for errors, the log says what a person has to know."""

import logging

from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConnectionSettings

_log = logging.getLogger("barnabas.client")


def log_unheard(settings: ConnectionSettings, error: KafkaError) -> None:
    """Nobody of the cluster answers, and the program has no `error_cb`: it would wait in silence.

    It goes to the client's `logger`, if it was given one. One broker of several is no news: the
    client helps itself.
    """
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        (settings.logger or _log).warning("%s: %s", settings.client_id, error.str())
