// The installed package against a running agent, whose address is in NOMAD_ADDR.
import assert from "node:assert/strict";
import { createServer, connect } from "node:net";
import { test } from "node:test";

import { Client, SojournError } from "@sojourn/client";

const JOB = {
  ID: "ts",
  Name: "ts",
  Type: "service",
  Datacenters: ["dc1"],
  TaskGroups: [
    {
      Name: "g",
      Count: 2,
      Tasks: [{ Name: "t", Driver: "mock_driver", Config: { run_for: "1h" }, Resources: { CPU: 20, MemoryMB: 16 } }],
    },
  ],
};

const client = Client.fromEnvironment();

/** Registers the job, follows it until both allocations run, and says at which index that was. */
async function registered() {
  const { index } = await client.request("PUT", "/v1/jobs", { body: { Job: JOB } });
  const running = new Set();
  for await (const event of client.events({ topics: ["Allocation"], from: "start" })) {
    const { JobID, ClientStatus } = event.payload.Allocation;
    if (JobID === "ts" && ClientStatus === "running") running.add(event.key);
    if (running.size === 2) return Math.max(index, event.index);
  }
  throw new Error("the stream ended");
}

async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

/** A proxy that cuts each connection after some bytes of its answer: within an event too, of which the largest have 10 KB. */
async function cutting(seed) {
  const target = new URL(process.env.NOMAD_ADDR);
  const proxy = { cuts: 0, address: "", server: null };
  let state = seed;
  const draw = (from, to) => from + ((state = (state * 1103515245 + 12345) & 0x7fffffff) >> 8) % (to - from);
  proxy.server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    let left = draw(500, 30_000);
    near.on("data", (piece) => far.write(piece)).on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
    far.on("data", (piece) => {
      near.write(piece.subarray(0, left));
      left -= piece.length;
      if (left <= 0) {
        proxy.cuts += 1;
        near.end();
        far.destroy();
      }
    });
  });
  await new Promise((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
  proxy.address = `http://127.0.0.1:${proxy.server.address().port}`;
  return proxy;
}

test("why, and the past", async () => {
  const index = await registered();
  const why = await client.explainJob("ts", { minIndex: index });
  assert.equal(why.value.Status, "running");
  assert.equal(why.value.Groups.g.Running, 2);
  await assert.rejects(client.explainJob("ts", { asOf: "1" }), { status: 404 });
  const first = await client.history({ perPage: 1 });
  assert.ok(first.nextToken);
  const second = await client.history({ perPage: 1, nextToken: first.nextToken });
  assert.notDeepEqual(second.value, first.value);
});

test("what if", async () => {
  await registered();
  const { value } = await client.whatIf({ changes: [{ stop: "ts" }] });
  assert.deepEqual([value.EndedBy, value.Counts.Stopped], ["quiet", 2]);
  assert.equal((await client.explainJob("ts")).value.Stopped, false);
  await assert.rejects(client.whatIf({ changes: [{}] }), SojournError);
});

test("breaks lose and repeat nothing", async () => {
  const index = await registered();
  const straight = await all(client.events({ from: "start", to: String(index) }));
  assert.ok(straight.length > 5);
  for (const seed of [1, 2, 3, 4]) {
    const proxy = await cutting(seed);
    const broken = new Client({ address: proxy.address });
    assert.deepEqual(await all(broken.events({ from: "start", to: String(index) })), straight);
    assert.ok(proxy.cuts > 0);
    proxy.server.close();
  }
});

test("a cursor keeps the place", async () => {
  const index = await registered();
  await client.setCursor("ts", { From: "start", Topics: ["Job"] });
  const seen = await all(client.events({ cursor: "ts", to: String(index) }));
  assert.ok(seen.length > 0);
  await client.ackCursor("ts", { ID: seen[0].id });
  assert.deepEqual(await all(client.events({ cursor: "ts", to: String(index) })), seen.slice(1));
  await client.deleteCursor("ts");
  await assert.rejects(client.readCursor("ts"), { status: 404 });
});

test("what no retry mends is thrown at once, and a caller can end it", async () => {
  await assert.rejects(client.events({ filter: "((" }).next(), { status: 400 });
  const nobody = new Client({ address: "http://127.0.0.1:1" });
  await assert.rejects(nobody.events({ retryFor: 200 }).next(), /no server answers/);
  await assert.rejects(nobody.access(), /does not answer/);
  const caller = new AbortController();
  const events = client.events({ from: "now", signal: caller.signal });
  const next = events.next();
  caller.abort();
  assert.equal((await next).done, true);
});
