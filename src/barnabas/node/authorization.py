"""The authorizer of a node, which brokers and controllers share, and which follows the metadata."""

import logging
from collections.abc import Callable, Mapping

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.errors import NodeError
from barnabas.security.authorizer.loader import InvalidAuthorizer, load_authorizer
from barnabas.server.authorization import RequestAuthorizer

log = logging.getLogger(__name__)


class NodeAuthorization:
    """Without an authorizer, everything is allowed."""

    def __init__(self, settings: Mapping[str, str], clock: Callable[[], int]) -> None:
        """Raises NodeError if the configured authorizer cannot be used."""
        try:
            self._authorizer = load_authorizer(settings)
        except InvalidAuthorizer as error:
            raise NodeError(str(error)) from error
        self.requests: RequestAuthorizer | None = None
        """Checks the requests of clients; None if everything is allowed."""
        if self._authorizer is not None:
            self.requests = RequestAuthorizer(self._authorizer, clock)
        self._is_loaded = False

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies new ACLs. Raises NodeError if the authorizer fails: it must not be ignored."""
        if self._authorizer is None:
            return
        try:
            self._authorizer.apply_delta(delta, image)
        except Exception as error:
            if self.requests is not None:
                self.requests.on_failure()
            log.exception("the authorizer failed on the metadata at offset %d", image.offset)
            raise NodeError(
                f"The authorizer cannot apply the metadata at offset {image.offset}: {error}."
            ) from error

    def on_loaded(self) -> None:
        """The image has everything that was committed before this node started."""
        if self._authorizer is not None and not self._is_loaded:
            self._is_loaded = True
            self._authorizer.complete_initial_load()
