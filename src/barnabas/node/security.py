"""The security of a node's listeners, and of its connections to other nodes."""

import logging
from collections.abc import Callable
from functools import cached_property

from barnabas.config import BrokerSettings, Listener, SecurityProtocol
from barnabas.metadata.image import MetadataImage
from barnabas.net.connection_options import PeerSecurity
from barnabas.node.environment import DiskThreads
from barnabas.node.errors import NodeError
from barnabas.node.node_tls import METRICS, NodeTls
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.http_authenticator import HttpAuthenticator
from barnabas.security.authentication.image_credentials import ImageCredentials
from barnabas.security.authentication.jaas_source import JaasSource
from barnabas.security.authentication.jwks import WITH_SASL, Documents
from barnabas.security.authentication.listener_mechanisms import ListenerMechanisms
from barnabas.security.authentication.peer_login import build_peer_login
from barnabas.security.authentication.sasl_server import SaslServer
from barnabas.security.authorizer.audit_log import AccessCheck
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.security.principal import KafkaPrincipal
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.metrics.http_endpoint import HttpSecurity
from barnabas.server.network.listener_security import PLAINTEXT, ListenerSecurity
from barnabas.wire.errors import KafkaError

log = logging.getLogger(__name__)

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class NodeSecurity:
    """Builds the security of listeners by their names. All methods raise NodeError."""

    def __init__(
        self,
        settings: BrokerSettings,
        threads: DiskThreads,
        image: Callable[[], MetadataImage],
        clock: Callable[[], int],
        key_documents: Documents,
    ) -> None:
        """`key_documents` are the keys of OAUTHBEARER, by the URL that has them."""
        self._key_documents = key_documents
        self.tls = NodeTls(settings, threads)
        self._settings = settings
        self.close: Callable[[], None] = lambda: None
        """Stops what the authentication of the metrics runs in the background."""
        self._credentials = ImageCredentials(image, settings["delegation.token.secret.key"], clock)

    def on_scram_change(self) -> None:
        """Called when the SCRAM credentials of users have changed."""
        self._credentials.on_scram_change()

    @cached_property
    def _jaas(self) -> JaasSource:
        return JaasSource(self._settings)

    def of_listener(self, listener: Listener) -> ListenerSecurity:
        """Returns the security of one of this node's listeners."""
        protocol = listener.security_protocol
        if protocol is SecurityProtocol.PLAINTEXT:
            return PLAINTEXT
        sasl = self._sasl_server(listener.name) if protocol in WITH_SASL else None
        return ListenerSecurity(protocol, self.tls.of_listener(listener.name), sasl)

    def of_metrics(self, authorizer: RequestAuthorizer | None) -> HttpSecurity:
        """Returns the security of the metrics endpoint."""
        tls = self.tls.of_listener(METRICS)
        methods = self._settings["barnabas.metrics.authentication"]

        def may_read_metrics(principal: KafkaPrincipal, host: str) -> bool:
            check = AccessCheck(principal, host, AclOperation.DESCRIBE, CLUSTER, "Metrics")
            try:
                return authorizer is None or authorizer.permits(check)
            except KafkaError:  # the ACLs are not loaded yet
                return False

        return HttpSecurity(
            tls=None if tls is None else lambda: tls.server_context,
            authenticator=self._http_authenticator(methods) if methods else None,
            may_read_metrics=may_read_metrics,
            failure_delay_ms=self._settings["connection.failed.authentication.delay.ms"],
        )

    def to_brokers(self) -> PeerSecurity:
        """Returns how this node connects to brokers."""
        name = self._settings.inter_broker_listener_name
        return self._peer_security(name, "sasl.mechanism.inter.broker.protocol")

    def to_controllers(self) -> PeerSecurity:
        """Returns how this node connects to controllers: to their first listener."""
        name = self._settings["controller.listener.names"][0]
        security = self._peer_security(name, "sasl.mechanism.controller.protocol")
        login = security.sasl
        if login is not None and login.mechanism in _SCRAM and self._has_other_controllers():
            log.warning(
                "controllers that log in to each other with %s cannot elect a leader when all of "
                "them start: its users are in the metadata log. Set "
                "sasl.mechanism.controller.protocol to PLAIN or another mechanism",
                login.mechanism,
            )
        return security

    def _has_other_controllers(self) -> bool:
        """Whether this node is one of several controllers."""
        servers = self._settings["controller.quorum.bootstrap.servers"]
        return self._settings.is_controller and len(self._settings.voters or servers) > 1

    def _peer_security(self, listener: str, mechanism_setting: str) -> PeerSecurity:
        tls = self.tls.to_listener(listener)
        if self._settings.security_protocol_of(listener) not in WITH_SASL:
            return PeerSecurity(tls=tls)
        mechanism = self._settings.for_listener(listener, mechanism_setting)
        try:
            login = build_peer_login(self._settings, self._jaas, listener, mechanism)
        except SaslConfigError as error:
            raise NodeError(str(error)) from None
        return PeerSecurity(tls=tls, sasl=login)

    def _http_authenticator(self, methods: tuple[str, ...]) -> HttpAuthenticator:
        mechanisms = ListenerMechanisms(self._settings, METRICS, self._jaas, self._credentials)
        self.close = mechanisms.close
        try:
            return mechanisms.build_http(methods)
        except SaslConfigError as error:
            raise NodeError(str(error)) from None

    def _sasl_server(self, listener: str) -> SaslServer:
        try:
            return ListenerMechanisms(
                self._settings, listener, self._jaas, self._credentials, self._key_documents
            ).build()
        except SaslConfigError as error:
            raise NodeError(str(error)) from None
