"""The event stream: server-sent events, read so that a break costs nothing."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from ._answer import SojournError

#: Servers say something every 15 seconds; a stream that is silent for three times as long is dead.
SILENCE_MAX = 45.0
#: The longest line: one index may carry a whole placement of a large job.
LINE_MAX = 256 << 20
#: Seconds before the first attempt after a break, and at most before each.
RETRY_FIRST, RETRY_MAX = 0.1, 10.0


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    #: The same for ever, on every server.
    id: str
    topic: str
    type: str
    key: str
    namespace: str
    index: int
    payload: dict[str, Any]
    #: All of it, with `Time`, `Actor`, `Requester`, `RequestID`, `Command`, `Fact` and `Cause`.
    body: dict[str, Any]

    @staticmethod
    def read(id: str, body: dict[str, Any]) -> Event:
        text = {name: str(body.get(name, "")) for name in ("Topic", "Type", "Key", "Namespace")}
        index, payload = int(body.get("Index", 0)), body.get("Payload") or {}
        return Event(id, text["Topic"], text["Type"], text["Key"], text["Namespace"], index, payload, body)


@dataclass(frozen=True)
class Gap:
    """With `on_gap="skip"`: what was asked for is no longer kept, and events go on at `oldest`."""

    id: str
    since: int
    oldest: int


@dataclass
class Message:
    id: str = ""
    event: str = ""
    data: str = ""


class Parser:
    """Lines into messages. A message that a break cut off is dropped: it comes again, whole."""

    def __init__(self) -> None:
        self._id, self._event = "", ""
        self._data: list[str] = []

    def line(self, line: str) -> Message | None:
        if not line:
            message = Message(self._id, self._event, "\n".join(self._data))
            self._event, self._data = "", []
            return message if message.id or message.data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        return None


class Lines:
    """Pieces of a body into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def split(self, piece: bytes) -> list[str]:
        *whole, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LINE_MAX:
            raise SojournError(0, f"a line of the event stream is longer than {LINE_MAX} bytes")
        return [line.removesuffix(b"\r").decode() for line in whole]


class Place:
    """Where a stream is, and how long to wait before the next attempt."""

    def __init__(self, query: dict[str, Any], last_id: str, retry_for: float | None) -> None:
        self._query, self._last_id, self._retry_for = query, last_id, retry_for
        self._attempts, self._broken_since = 0, 0.0
        self.ended = False

    def request(self) -> dict[str, Any]:
        headers = {"Accept": "text/event-stream"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        return {"params": self._query, "headers": headers, "timeout": httpx.Timeout(30.0, read=SILENCE_MAX)}

    def take(self, message: Message) -> Event | Gap | None:
        """What to hand on of a message. Only then has the stream come this far."""
        self._attempts = 0
        if message.event == "end":
            self.ended = True
            return None
        self._last_id = message.id or self._last_id
        # The first message only says where the stream begins.
        if not message.data:
            return None
        body = json.loads(message.data)
        if message.event == "gap":
            return Gap(message.id, int(body["From"]), int(body["Oldest"]))
        return None if message.event == "checkpoint" else Event.read(message.id, body)

    def pause(self, error: httpx.TransportError | SojournError) -> float:
        """Seconds to wait. Raises what another attempt cannot mend, and what lasts for too long."""
        if isinstance(error, SojournError) and error.status < 500 and error.status != 429:
            raise error
        now = time.monotonic()
        if not self._attempts:
            self._broken_since = now
        self._attempts += 1
        if self._retry_for is not None and now - self._broken_since >= self._retry_for:
            raise error if isinstance(error, SojournError) else SojournError(0, f"no server answers: {error}")
        wait = min(RETRY_FIRST * 2.0 ** min(self._attempts - 1, 16), RETRY_MAX) * random.uniform(0.5, 1.0)
        return max(wait, getattr(error, "retry_after", None) or 0.0)


def messages(parser: Parser, lines: Lines, piece: bytes) -> Iterator[Message]:
    for line in lines.split(piece):
        if message := parser.line(line):
            yield message
