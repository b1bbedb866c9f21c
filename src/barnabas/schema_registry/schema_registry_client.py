"""The client and its models, under the module name of earlier versions of confluent_kafka."""

from barnabas.schema_registry import *  # noqa: F403
