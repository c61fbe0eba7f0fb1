import assert from "node:assert/strict";
import { until } from "../agent.mjs";

const NODES = 10_000;
const ALLOCS = 12_000;
const id = (kind, number) => `${kind}0000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

const node = (number) => ({
  ID: id("a", number),
  Name: `client-${String(number).padStart(5, "0")}`,
  Address: "10.0.0.1",
  Datacenter: "dc1",
  NodeClass: "",
  NodePool: "large",
  Drain: false,
  SchedulingEligibility: number % 50 ? "eligible" : "ineligible",
  Status: number % 40 ? "ready" : "down",
  StatusDescription: "",
  NodeResources: { Cpu: { CpuShares: 4000 }, Memory: { MemoryMB: 8192 }, Disk: { DiskMB: 1000 } },
});

const alloc = (number) => ({
  ID: id("b", number),
  Name: `job-${number % 100}.g[${number}]`,
  Namespace: "default",
  NodeID: id("a", number % NODES),
  NodeName: node(number % NODES).Name,
  JobID: `job-${number % 100}`,
  TaskGroup: "g",
  DesiredStatus: "run",
  ClientStatus: "running",
  PreviousAllocation: number % 7 ? "" : id("b", number + 1),
  TaskStates: null,
  AllocatedResources: { Tasks: { t: { Cpu: { CpuShares: 500 + (number % 7) * 500 }, Memory: { MemoryMB: 1024 * (1 + (number % 8)) } } }, Shared: { DiskMB: 1, Ports: null } },
});

/** Answers lists as a cluster of so many would, page by page, and counts what is asked for. */
async function large(page) {
  const asked = { nodes: 0, allocations: 0 };
  const rows = { nodes: [NODES, node], allocations: [ALLOCS, alloc] };
  await page.route(/\/v1\/(nodes|allocations)\?/, async (route) => {
    const url = new URL(route.request().url());
    const kind = url.pathname.split("/").at(-1);
    const [all, one] = rows[kind];
    const text = url.searchParams.get("filter")?.match(/Name contains "(.*?)"/)?.[1];
    const found = text && Array.from({ length: all }, (_, number) => one(number)).filter(({ Name }) => Name.includes(text));
    const count = found ? found.length : all;
    const size = Number(url.searchParams.get("per_page"));
    const begin = Number(url.searchParams.get("next_token") || 0);
    const end = Math.min(count, begin + size);
    asked[kind] += 1;
    const headers = { "Content-Type": "application/json", "X-Nomad-Index": "9", ...(end < count && { "X-Nomad-NextToken": String(end) }) };
    const list = Array.from({ length: end - begin }, (_, place) => (found ? found[begin + place] : one(begin + place)));
    await route.fulfill({ headers, body: JSON.stringify(list) });
  });
  return asked;
}

/** Counts what is drawn: the clock of a busy machine says nothing, and the number of calls is always the same. */
function counting() {
  globalThis.drawn = 0;
  const pen = CanvasRenderingContext2D.prototype;
  for (const name of ["fillRect", "strokeRect", "fillText", "stroke", "fill", "bezierCurveTo", "drawImage", "putImageData"]) {
    const own = pen[name];
    pen[name] = function (...args) {
      // The time line, which moves on by itself, is not what is counted.
      if (this.canvas.closest(".picture")) globalThis.drawn += 1;
      return own.apply(this, args);
    };
  }
}

/** The calls that follow from something, until nothing more is drawn. */
async function calls(page, doing) {
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
  await frames();
  await page.evaluate(() => (globalThis.drawn = 0));
  await doing();
  await frames();
  return page.evaluate(() => globalThis.drawn);
}

/** 10,000 clients and lanes of 1,000 allocations: only what is seen is drawn, only when it changes, and nothing is read twice. */
export default async function ({ page, agent, open, accessible }) {
  await page.addInitScript(counting);
  const asked = await large(page);
  await open("topology");
  const kind = page.locator(".title .kind");
  const says = (text) => until(text, async () => (await kind.innerText()).includes(text));
  await says(`10,000 clients, ${ALLOCS.toLocaleString("en")} live allocations`);
  await until("all is read", async () => (await page.getByText("Not all allocations are read yet.").count()) === 0);
  await page.getByLabel("Connection: live").waitFor();
  const elements = () => page.evaluate(() => document.querySelectorAll("main *").length);
  assert.ok((await elements()) < 80, `${await elements()} elements`);

  const picture = page.getByRole("img", { name: /^Clients by/ });
  const { width, height } = await picture.boundingBox();
  for (const [step, [across, down]] of [[5, 5], [9, 9], [16, 16], [31, 23], [68, 38], [176, 72]].entries()) {
    // From another size, so that each choice draws.
    await page.getByRole("combobox", { name: "Size" }).selectOption(step ? "0" : "1");
    const drawn = await calls(page, async () => {
      await page.getByRole("combobox", { name: "Size" }).selectOption(String(step));
      await until("it is drawn", () => page.evaluate(() => globalThis.drawn > 0));
    });
    const boxes = Math.ceil(width / across) * (Math.ceil(height / down) + 2);
    // An edge, a ground, a level, and at most three lines of text.
    const most = Math.min(NODES, boxes) * (step < 4 ? 3 : 6);
    assert.ok(drawn > 0 && drawn <= 2 * most, `of size ${step} ${drawn} calls for ${boxes} boxes that are seen`);
  }
  await page.getByRole("combobox", { name: "Size" }).selectOption("2");
  await picture.hover();
  const panned = await calls(page, async () => {
    await page.mouse.wheel(0, 200);
    await until("it is drawn", () => page.evaluate(() => globalThis.drawn > 0));
  });
  assert.ok(panned <= 2 * 3 * Math.ceil(width / 16) * (Math.ceil(height / 16) + 2), `${panned} calls for a step`);
  const move = async () => {
    for (let step = 1; step < 40; step += 1) await picture.hover({ position: { x: step * 12, y: step * 7 } });
  };
  assert.equal(await calls(page, move), 0);
  await page.getByText(/^client-\d+ in large: .*memory/).waitFor();
  await accessible();
  // Larger around what is pointed at.
  await picture.hover({ position: { x: 100, y: 100 } });
  const pointed = (await page.locator(".pointed").innerText()).split(" ")[0];
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await until("the next size", async () => (await page.getByRole("combobox", { name: "Size" }).inputValue()) === "3");
  const top = () => page.locator(".picture").evaluate((box) => box.scrollTop);
  const row = Math.floor(Number(pointed.slice(7)) / Math.floor((width + 3) / 31));
  await until("it is in sight", async () => Math.abs((row + 0.5) * 23 - ((await top()) + 100)) < 40);

  // What happens changes the picture; the lists are not read again.
  const before = { ...asked };
  const job = (count) => `job "few" {\n  group "g" {\n    count = ${count}\n    task "t" {\n      driver = "raw_exec"\n      config {\n        command = "/bin/sleep"\n        args = ["600"]\n      }\n    }\n  }\n}\n`;
  await agent.run(job(2));
  await says(`${(ALLOCS + 2).toLocaleString("en")} live allocations`);
  await agent.ask("/v1/job/few?purge=true", undefined, { method: "DELETE" });
  await says(`${ALLOCS.toLocaleString("en")} live allocations`);
  assert.deepEqual(asked, before);

  await page.getByRole("link", { name: "Lanes" }).click();
  await page.getByRole("heading", { name: /1,\d\d\d allocations|1,000 allocations/ }).waitFor();
  const lanes = page.getByRole("img", { name: /^Allocations by client/ });
  await lanes.hover();
  const box = await lanes.boundingBox();
  const tall = await page.locator(".picture").evaluate((one) => one.scrollHeight);
  assert.ok(tall > 16000 && box.height < 800, `${tall} pixels, of which ${box.height} are seen`);
  const drawn = await calls(page, async () => {
    await page.mouse.wheel(0, 12000);
    await until("it is drawn", () => page.evaluate(() => globalThis.drawn > 0));
  });
  assert.ok(drawn > 0 && drawn < 1200, `${drawn} calls`);
  // Also what stands further down than a canvas can be tall is drawn.
  const colors = await lanes.evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({ length: data.length / 4 }, (_, place) => data.slice(place * 4, place * 4 + 4).join())).size;
  });
  assert.ok(colors > 3);
  assert.ok((await elements()) < 80);

  // A list is read in pages, drawn where it is looked at, and looked through by the server.
  await page.getByRole("link", { name: "Clients" }).click();
  await page.getByText("500 clients").waitFor();
  const few = async () => assert.ok((await page.locator("tbody tr").count()) < 250);
  await few();
  await page.getByRole("link", { name: "client-00499" }).waitFor({ state: "detached" });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.getByRole("link", { name: "client-00499" }).waitFor();
  await few();
  await accessible();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("link", { name: "client-00500" }).waitFor();
  await page.getByText("Page 2", { exact: true }).waitFor();
  await page.getByRole("searchbox").fill("client-0987");
  await page.getByText("10 clients").waitFor();
  await page.getByRole("link", { name: "client-09876" }).waitFor();
  await page.getByRole("searchbox").fill("");
  // Back where one was.
  await page.getByRole("link", { name: "client-00500" }).waitFor();
  await page.getByRole("button", { name: "Previous page" }).click();
  await page.getByRole("link", { name: "client-00000" }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Previous page" }).isDisabled());
}
