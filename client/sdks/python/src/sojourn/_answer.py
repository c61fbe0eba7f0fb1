from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a server answered."""

    value: T
    #: The index that it was read at, or that a write got; 0 where there is none.
    index: int = 0
    #: Where the next page begins; empty on the last one.
    next_token: str = ""


class SojournError(Exception):
    """A server refused a request, or there is no server; then `status` is 0."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        self.message = message
        #: Seconds, where the server names them.
        self.retry_after = retry_after


def quoted(part: str) -> str:
    """A part of a path. Slashes stay: ids of jobs and paths of variables have them."""
    return quote(part, safe="/")
