from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import httpx

from ._answer import Answer, SojournError
from ._api import AsyncOperations, Operations
from ._events import Event, Gap, Lines, Parser, Place, messages

ADDRESS = "http://127.0.0.1:4646"
#: A blocking query may wait for five minutes and a sixteenth of it.
TIMEOUT = httpx.Timeout(10.0, read=330.0)


class _Settings:
    """Where a client calls, and as whom."""

    def __init__(self, address: str, token: str, namespace: str, region: str) -> None:
        self.address = address.rstrip("/")
        self.headers = {"X-Nomad-Token": token} if token else {}
        self._query = {name: value for name, value in (("namespace", namespace), ("region", region)) if value}

    def query(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Without what is not set, or false: a switch that is named is on. A call's come before the client's own."""
        own = {name: value for name, value in given.items() if value or (value == 0 and value is not False)}
        return self._query | {name: "true" if value is True else value for name, value in own.items()}

    def call(self, method: str, path: str, given: Mapping[str, Any]) -> dict[str, Any]:
        headers = {name: str(value) for name, value in (given.get("headers") or {}).items() if value is not None}
        body = given.get("body")
        content = None if body is None else json.dumps(body).encode()
        return {
            "method": method,
            "url": path,
            "params": self.query(given.get("query") or {}),
            "headers": headers,
            "content": content,
        }


def _environment() -> dict[str, Any]:
    """The variables that Nomad's command line reads."""
    get = os.environ.get
    verify: ssl.SSLContext | bool = True
    if get("NOMAD_CACERT") or get("NOMAD_CAPATH") or get("NOMAD_CLIENT_CERT"):
        verify = ssl.create_default_context(cafile=get("NOMAD_CACERT"), capath=get("NOMAD_CAPATH"))
        if certificate := get("NOMAD_CLIENT_CERT"):
            verify.load_cert_chain(certificate, get("NOMAD_CLIENT_KEY"))
    elif get("NOMAD_SKIP_VERIFY", "").lower() in ("1", "t", "true"):
        verify = False
    return {
        "address": get("NOMAD_ADDR") or ADDRESS,
        "token": get("NOMAD_TOKEN", ""),
        "namespace": get("NOMAD_NAMESPACE", ""),
        "region": get("NOMAD_REGION", ""),
        "verify": verify,
    }


def _answer(response: httpx.Response, raw: bool) -> Answer[Any]:
    _check(response)
    number = response.headers.get("X-Nomad-Index", "")
    index = int(number) if number.isdigit() else 0
    value: Any = response.content
    if not raw:
        value = json.loads(response.content) if response.content.strip() else None
    return Answer(value, index, response.headers.get("X-Nomad-NextToken", ""))


def _check(response: httpx.Response) -> None:
    if not response.is_success:
        seconds = response.headers.get("Retry-After", "")
        raise SojournError(response.status_code, response.text.strip(), float(seconds) if seconds.isdigit() else None)


def _asked(
    topics: Sequence[str],
    from_: str,
    to: str,
    filter: str,
    namespace: str,
    cursor: str,
    member: int | None,
    view: str,
    on_gap: str,
) -> dict[str, Any]:
    return {
        "topic": list(topics),
        "from": from_,
        "to": to,
        "filter": filter,
        "namespace": namespace,
        "cursor": cursor,
        "member": member,
        "view": view,
        "on_gap": on_gap,
    }


class Client(Operations):
    """A client that waits for its answers. May be used by several threads; `close` it, or use it in a `with`."""

    def __init__(
        self,
        address: str = ADDRESS,
        *,
        token: str = "",
        namespace: str = "",
        region: str = "",
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._settings = _Settings(address, token, namespace, region)
        own = self._settings
        self._http = httpx.Client(base_url=own.address, headers=own.headers, verify=verify, timeout=TIMEOUT)

    @classmethod
    def from_environment(cls) -> Client:
        """With NOMAD_ADDR, NOMAD_TOKEN, NOMAD_NAMESPACE, NOMAD_REGION, NOMAD_CACERT, NOMAD_CLIENT_CERT and so on."""
        return cls(**_environment())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, path: str, **given: Any) -> Answer[Any]:
        """Any route: `query`, `headers` and `body` are what is sent, `raw=True` gives the bytes of the answer."""
        try:
            response = self._http.request(**self._settings.call(method, path, given))
        except httpx.TransportError as error:
            raise SojournError(0, f"{self._settings.address} does not answer: {error}") from error
        return _answer(response, given.get("raw", False))

    def events(
        self,
        *,
        topics: Sequence[str] = (),
        from_: str = "",
        to: str = "",
        filter: str = "",
        namespace: str = "",
        cursor: str = "",
        member: int | None = None,
        view: str = "",
        on_gap: str = "",
        last_id: str = "",
        retry_for: float | None = None,
    ) -> Iterator[Event | Gap]:
        """What happens, and after a break goes on happening: nothing is missed and nothing comes twice.

        `retry_for`: seconds for which to try again while no server answers; for ever unless given. A `Gap` comes only with
        `on_gap="skip"`.
        """
        query = self._settings.query(_asked(topics, from_, to, filter, namespace, cursor, member, view, on_gap))
        place = Place(query, last_id, retry_for)
        while True:
            try:
                with self._http.stream("GET", "/v1/event/stream", **place.request()) as response:
                    if not response.is_success:
                        response.read()
                        _check(response)
                    parser, lines = Parser(), Lines()
                    for piece in response.iter_bytes():
                        for message in messages(parser, lines, piece):
                            taken = place.take(message)
                            if taken is not None:
                                yield taken
                            if place.ended:
                                return
                raise httpx.ReadError("the stream ended")
            except (httpx.TransportError, SojournError) as error:
                time.sleep(place.pause(error))


class AsyncClient(AsyncOperations):
    """The same for asyncio. Use it in an `async with`, or `await` its `close`."""

    def __init__(
        self,
        address: str = ADDRESS,
        *,
        token: str = "",
        namespace: str = "",
        region: str = "",
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._settings = _Settings(address, token, namespace, region)
        own = self._settings
        self._http = httpx.AsyncClient(base_url=own.address, headers=own.headers, verify=verify, timeout=TIMEOUT)

    @classmethod
    def from_environment(cls) -> AsyncClient:
        """As `Client.from_environment`."""
        return cls(**_environment())

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def request(self, method: str, path: str, **given: Any) -> Answer[Any]:
        """As `Client.request`."""
        try:
            response = await self._http.request(**self._settings.call(method, path, given))
        except httpx.TransportError as error:
            raise SojournError(0, f"{self._settings.address} does not answer: {error}") from error
        return _answer(response, given.get("raw", False))

    async def events(
        self,
        *,
        topics: Sequence[str] = (),
        from_: str = "",
        to: str = "",
        filter: str = "",
        namespace: str = "",
        cursor: str = "",
        member: int | None = None,
        view: str = "",
        on_gap: str = "",
        last_id: str = "",
        retry_for: float | None = None,
    ) -> AsyncIterator[Event | Gap]:
        """As `Client.events`."""
        query = self._settings.query(_asked(topics, from_, to, filter, namespace, cursor, member, view, on_gap))
        place = Place(query, last_id, retry_for)
        while True:
            try:
                async with self._http.stream("GET", "/v1/event/stream", **place.request()) as response:
                    if not response.is_success:
                        await response.aread()
                        _check(response)
                    parser, lines = Parser(), Lines()
                    async for piece in response.aiter_bytes():
                        for message in messages(parser, lines, piece):
                            taken = place.take(message)
                            if taken is not None:
                                yield taken
                            if place.ended:
                                return
                raise httpx.ReadError("the stream ended")
            except (httpx.TransportError, SojournError) as error:
                await asyncio.sleep(place.pause(error))
