"""A page on this machine on which people explain inputs by hand, served by Starlette and uvicorn."""

from zomirror.studio.site import run

__all__ = ["run"]
