"""A studio in a thread of the tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from zomirror.studio.session import Session
from zomirror.studio.site import configuration, site


@contextmanager
def studio(session: Session) -> Iterator[str]:
    """The address of the studio, with its token."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        application, address = site(session, listening.getsockname()[1])
        server = uvicorn.Server(configuration(application))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield address
        finally:
            session.stop()
            session.wait(10)
            server.should_exit = True
            thread.join(10)
