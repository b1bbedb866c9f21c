"""TLS of a node: of the listeners that it serves, and of its connections to other nodes.

The certificates of a listener may change at run time. New connections use the new ones.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.config import BrokerSettings, SecurityProtocol
from barnabas.net.tls import TlsContext, TlsSettings
from barnabas.node.errors import NodeError

if TYPE_CHECKING:
    from barnabas.node.environment import DiskThreads
    from barnabas.security.tls.listener_tls import ListenerTls

log = logging.getLogger(__name__)

METRICS = "METRICS"
"""The name that settings of the metrics endpoint have, as if it were a listener of clients."""

_METRICS_PROTOCOL = "barnabas.metrics.protocol"
_TLS_PROTOCOLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


class NodeTls:
    """TLS of every listener that this node serves or connects to."""

    def __init__(self, settings: BrokerSettings, threads: "DiskThreads") -> None:
        """Raises NodeError if a certificate or key cannot be used."""
        self._settings = settings
        self._threads = threads
        self._listeners = {listener.name: listener for listener in settings.listeners}
        self._connected_to = {settings["controller.listener.names"][0]}
        if settings.is_broker:
            self._connected_to.add(settings.inter_broker_listener_name)
        self._tls = {
            name: self._load_tls(name)
            for name in self._listeners.keys() | self._connected_to
            if settings.security_protocol_of(name) in _TLS_PROTOCOLS
        }
        if settings["barnabas.metrics.listener"] and settings[_METRICS_PROTOCOL] == "https":
            self._tls[METRICS] = self._load_tls(METRICS)
        self._monitoring: dict[str, TlsContext] = {}
        self._reloading: asyncio.Task[None] | None = None
        for tls in self._tls.values():
            for warning in tls.find_warnings():
                log.warning("%s", warning)

    @property
    def is_used(self) -> bool:
        """Whether any listener has TLS."""
        return bool(self._tls)

    def of_listener(self, name: str) -> "ListenerTls | None":
        """Returns the TLS of a listener that this node serves; None if it has none."""
        return self._tls.get(name)

    def to_listener(self, name: str) -> TlsContext | None:
        """Returns the context of connections to a listener of other nodes; None without TLS."""
        tls = self._tls.get(name)
        return tls.client if tls is not None else None

    def to_monitored(self, listener: str, protocol: int) -> TlsContext | None:
        """Returns the context of a connection that only shows that a broker is alive.

        Nothing is sent on it, so the broker's certificate is not verified.
        """
        if protocol not in _TLS_PROTOCOLS:
            return None
        if listener not in self._monitoring:
            self._monitoring[listener] = TlsContext(self._monitoring_context(listener))
        return self._monitoring[listener]

    # Changes at run time

    async def validate(self, values: Mapping[str, Any]) -> None:
        """Raises TlsConfigError if the stores of a listener may not become those of `values`."""
        for tls in self._tls.values():
            if tls.needs_reload(values):
                await self._threads.call(partial(tls.load, values))

    def on_settings_change(self, values: Mapping[str, Any]) -> None:
        """Reads the stores again whose settings or files have changed."""
        if self._tls:
            before = self._reloading
            self._reloading = asyncio.create_task(self._reload_after(before, values))

    async def reload(self, values: Mapping[str, Any]) -> None:
        """As `on_settings_change`, and returns when it is done."""
        self.on_settings_change(values)
        if self._reloading is not None:
            await self._reloading

    def stop_reloading(self) -> None:
        """Called when the node stops: the threads that read the stores end."""
        if self._reloading is not None:
            self._reloading.cancel()

    async def _reload_after(
        self, before: "asyncio.Task[None] | None", values: Mapping[str, Any]
    ) -> None:
        if before is not None:
            await before
        for tls in self._tls.values():
            if tls.needs_reload(values):
                await self._reload_stores(tls, values)

    async def _reload_stores(self, tls: "ListenerTls", values: Mapping[str, Any]) -> None:
        from barnabas.net.listener_config import TlsConfigError

        try:
            state = await self._threads.call(partial(tls.load, values))
        except TlsConfigError as error:
            log.error("listener %s keeps its current certificates: %s", tls.listener, error)
            return
        tls.apply(state)
        log.info("listener %s has new certificates: %s", tls.listener, tls.describe())
        for warning in tls.find_warnings():
            log.warning("%s", warning)

    # Building

    def _load_tls(self, name: str) -> "ListenerTls":
        from barnabas.net.listener_config import ListenerConfig, TlsConfigError
        from barnabas.security.tls.listener_tls import ListenerTls

        try:
            return ListenerTls(
                ListenerConfig(name, self._settings),
                SecurityProtocol.SSL
                if name == METRICS
                else self._settings.security_protocol_of(name),
                is_served=name in self._listeners or name == METRICS,
                is_connected_to=name in self._connected_to,
            )
        except TlsConfigError as error:
            raise NodeError(f"{str(error)[0].upper()}{str(error)[1:]}.") from None

    def _monitoring_context(self, listener: str) -> ssl.SSLContext:
        from barnabas.net.listener_config import ListenerConfig, TlsConfigError
        from barnabas.security.tls.listener_tls import monitoring_context

        try:
            return monitoring_context(ListenerConfig(listener, self._settings))
        except TlsConfigError:
            return TlsSettings(verify_certificates=False).client_context()
