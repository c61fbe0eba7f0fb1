"""Sojourn's own API: why, the past, what-if, and an event stream that goes on where it broke off."""

from ._answer import Answer, SojournError
from ._client import AsyncClient, Client
from ._events import Event, Gap

__all__ = ["Answer", "AsyncClient", "Client", "Event", "Gap", "SojournError"]
