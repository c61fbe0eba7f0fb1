"""The installed package against a running agent, whose address is in NOMAD_ADDR."""

import asyncio
import os
import random
import threading
import unittest
from urllib.parse import urlsplit

from sojourn import AsyncClient, Client, Event, SojournError

JOB = {
    "ID": "py",
    "Name": "py",
    "Type": "service",
    "Datacenters": ["dc1"],
    "TaskGroups": [
        {
            "Name": "g",
            "Count": 2,
            "Tasks": [
                {
                    "Name": "t",
                    "Driver": "mock_driver",
                    "Config": {"run_for": "1h"},
                    "Resources": {"CPU": 20, "MemoryMB": 16},
                }
            ],
        }
    ],
}


class Cutting:
    """A proxy that cuts each connection after some bytes of its answer: within an event too, of which the largest have 10 KB."""

    def __init__(self, seed: int) -> None:
        self.chance, self.cuts = random.Random(seed), 0
        self.loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        threading.Thread(target=self.run, args=(ready,), daemon=True).start()
        ready.wait()

    def run(self, ready: threading.Event) -> None:
        async def begin() -> None:
            server = await asyncio.start_server(self.pass_on, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        self.loop.run_until_complete(begin())
        self.loop.run_forever()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(os.environ["NOMAD_ADDR"])
        far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port)
        far_writer.write(await reader.readuntil(b"\r\n\r\n"))
        left = self.chance.randrange(500, 30_000)
        while left > 0 and (piece := await far_reader.read(min(left, 512))):
            writer.write(piece)
            left -= len(piece)
            await writer.drain()
        self.cuts += left <= 0
        writer.close()
        far_writer.close()


def registered(client: Client) -> int:
    """Registers the job, follows it until both allocations run, and says at which index that was."""
    index = client.request("PUT", "/v1/jobs", body={"Job": JOB}).index
    running: set[str] = set()
    for event in client.events(topics=["Allocation"], from_="start"):
        allocation = event.payload["Allocation"]
        if allocation["JobID"] == "py" and allocation["ClientStatus"] == "running":
            running.add(event.key)
        if len(running) == 2:
            return max(index, event.index)
    raise AssertionError("the stream ended")


class Tests(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client.from_environment()
        self.addCleanup(self.client.close)

    def test_why_and_the_past(self) -> None:
        index = registered(self.client)
        why = self.client.explain_job("py", min_index=index)
        self.assertEqual((why.value["Status"], why.value["Groups"]["g"]["Running"]), ("running", 2))
        self.assertGreaterEqual(why.index, 1)
        with self.assertRaises(SojournError) as raised:
            self.client.explain_job("py", as_of="1")
        self.assertEqual(raised.exception.status, 404)
        lines = self.client.job_history("py").value["Lines"]
        self.assertIn("py", str(lines[0]))
        first = self.client.history(per_page=1)
        self.assertTrue(first.next_token)
        self.assertNotEqual(self.client.history(per_page=1, next_token=first.next_token).value, first.value)

    def test_what_if(self) -> None:
        registered(self.client)
        result = self.client.what_if({"changes": [{"stop": "py"}]}).value
        self.assertEqual((result["EndedBy"], result["Counts"]["Stopped"]), ("quiet", 2))
        self.assertFalse(self.client.explain_job("py").value["Stopped"])
        with self.assertRaisesRegex(SojournError, "400: .*changes"):
            self.client.what_if({"changes": [{}]})

    def test_breaks_lose_and_repeat_nothing(self) -> None:
        index = registered(self.client)
        straight = list(self.client.events(from_="start", to=str(index)))
        ids = [event.id for event in straight]
        self.assertGreater(len(ids), 5)
        self.assertEqual(len(set(ids)), len(ids))
        for seed in range(4):
            proxy = Cutting(seed)
            with Client(f"http://127.0.0.1:{proxy.port}") as broken:
                self.assertEqual(list(broken.events(from_="start", to=str(index))), straight)
            self.assertGreater(proxy.cuts, 0)

    def test_breaks_lose_and_repeat_nothing_in_asyncio(self) -> None:
        index = registered(self.client)
        straight = list(self.client.events(from_="start", to=str(index)))

        async def read(proxy: Cutting) -> list[Event]:
            async with AsyncClient(f"http://127.0.0.1:{proxy.port}") as broken:
                return [event async for event in broken.events(from_="start", to=str(index))]

        proxy = Cutting(7)
        self.assertEqual(asyncio.run(read(proxy)), straight)
        self.assertGreater(proxy.cuts, 0)

    def test_a_cursor_keeps_the_place(self) -> None:
        index = registered(self.client)
        self.client.set_cursor("py", {"From": "start", "Topics": ["Job"]})
        seen = list(self.client.events(cursor="py", to=str(index)))
        self.assertTrue(seen and all(event.topic == "Job" for event in seen))
        self.client.ack_cursor("py", {"ID": seen[0].id})
        again = list(self.client.events(cursor="py", to=str(index)))
        self.assertEqual(again, seen[1:])
        self.client.delete_cursor("py")
        with self.assertRaises(SojournError) as raised:
            self.client.read_cursor("py")
        self.assertEqual(raised.exception.status, 404)

    def test_what_no_retry_mends_is_raised_at_once(self) -> None:
        with self.assertRaisesRegex(SojournError, "400"):
            next(self.client.events(filter="(("))
        with Client("http://127.0.0.1:1") as nobody:
            with self.assertRaisesRegex(SojournError, "no server answers"):
                next(nobody.events(retry_for=0.2))
            with self.assertRaisesRegex(SojournError, "does not answer"):
                nobody.access()


if __name__ == "__main__":
    unittest.main()
