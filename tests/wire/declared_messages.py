"""Every message that `barnabas.wire.messages` declares."""

import importlib
import pkgutil

import barnabas.wire.messages
from barnabas.wire.schema import Message


def declared_messages() -> list[type[Message]]:
    messages = []
    for module in pkgutil.iter_modules(barnabas.wire.messages.__path__):
        contents = vars(importlib.import_module(f"barnabas.wire.messages.{module.name}"))
        messages += [
            it
            for it in contents.values()
            if isinstance(it, type) and issubclass(it, Message) and it is not Message
        ]
    return messages


MESSAGES = declared_messages()
MESSAGES_BY_NAME = {message.__name__: message for message in MESSAGES}
EVERY_VERSION = [(message, version) for message in MESSAGES for version in message.VERSIONS]
