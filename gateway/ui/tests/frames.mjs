// How smooth the page is in front of a large cluster: node tests/frames.mjs [--nodes 10000] [--jobs 1000] [--count 100] [--at ADDRESS] [SCENE…]
//
// Starts an agent, has `sojourn bench cluster` register simulated clients that live, registers jobs on them, and looks at views of
// that in Chromium: of each scene the time between frames, what of it was scripting, and the longest piece of scripting. With
// `--at` it looks at a cluster that is there. What a frame takes besides depends on what draws it; scripting is the page's own.

import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { Agent, SOJOURN, fromSources, launch, until } from "./agent.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: "string", default: "10000" },
    jobs: { type: "string", default: "1000" },
    count: { type: "string", default: "100" },
    at: { type: "string" },
  },
});
const [NODES, JOBS, COUNT] = [values.nodes, values.jobs, values.count].map(Number);
/** Registrations that are on their way at once. */
const AT_ONCE = 4;

/** Jobs of all sizes, so that some clients are full and others are not. */
function job(number, pool) {
  const Resources = { CPU: 20 + 37 * (number % 50), MemoryMB: 32 + 50 * (number % 60) };
  const task = { Name: "task", Driver: "mock_driver", Config: { run_for: "10h" }, Resources };
  const name = `load-${String(number).padStart(5, "0")}`;
  return { ID: name, Name: name, Type: "service", NodePool: pool, Datacenters: ["*"], TaskGroups: [{ Name: "group", Count: COUNT, Tasks: [task] }] };
}

async function fill(agent) {
  const args = ["bench", "cluster", "-address", agent.address, "-nodes", String(NODES), "-live", "-jobs", "0", "-time", "10h"];
  const fleet = spawn(SOJOURN, args, { stdio: "ignore" });
  const ready = async () => {
    const nodes = await agent.ask(`/v1/nodes?per_page=${NODES + 10}`);
    const bench = nodes.filter((node) => node.NodePool.startsWith("bench-") && node.Status === "ready");
    return bench.length >= NODES && bench[0].NodePool;
  };
  const pool = await until("clients are ready", ready, 600_000);
  let next = 0;
  const register = async () => {
    while (next < JOBS) {
      next += 1;
      await agent.ask("/v1/jobs", { Job: job(next, pool) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, register));
  const running = async () => {
    const jobs = await agent.ask(`/v1/jobs?prefix=load-&per_page=${JOBS}`);
    return jobs.reduce((sum, one) => sum + (one.JobSummary.Summary.group?.Running ?? 0), 0) >= JOBS * COUNT;
  };
  await until("allocations run", running, 1_800_000);
  return fleet;
}

const round = (number) => Math.round(number * 10) / 10;
const quantile = (sorted, part) => round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0);

const SCRIPT = new Set(["FunctionCall", "EvaluateScript", "RunMicrotasks", "v8.callFunction", "FireAnimationFrame", "TimerFire", "EventDispatch"]);
const FRAME_MS = 1000 / 60;

/** What the main thread did, of a trace: how long each piece of scripting took, and all of it within each 60th of a second. */
function scripts(trace) {
  const by = new Map();
  for (const event of trace.traceEvents) {
    if (event.ph !== "X" || !SCRIPT.has(event.name)) continue;
    const key = `${event.pid}/${event.tid}`;
    if (!by.has(key)) by.set(key, []);
    by.get(key).push(event);
  }
  const main = [...by.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  main.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const pieces = [];
  const frames = new Map();
  let end = 0;
  for (const { ts, dur = 0, tdur = dur } of main) {
    if (ts < end) continue;
    end = ts + dur;
    // The time of the thread: what it waits for a processor, which others have, is not the page's.
    pieces.push(tdur / 1000);
    const frame = Math.floor(ts / 1000 / FRAME_MS);
    frames.set(frame, (frames.get(frame) ?? 0) + tdur / 1000);
  }
  const sorted = (list) => list.sort((a, b) => a - b);
  return { pieces: sorted(pieces), frames: sorted([...frames.values()]) };
}

/** What a scene took: frames, and scripting. */
async function measured(browser, page, name, doing) {
  await page.evaluate(() => {
    globalThis.frames_ = [];
    let last = performance.now();
    const tick = (now) => {
      globalThis.frames_?.push(now - last);
      last = now;
      if (globalThis.frames_) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await browser.startTracing(page, { categories: ["devtools.timeline", "v8.execute", "disabled-by-default-devtools.timeline"] });
  // Frames while nothing is done yet, or any more, are none of the scene.
  await page.evaluate(() => (globalThis.frames_.length = 0));
  const began = performance.now();
  await doing();
  const seconds = (performance.now() - began) / 1000;
  const frames = await page.evaluate(() => {
    const all = globalThis.frames_;
    globalThis.frames_ = null;
    return all;
  });
  const trace = JSON.parse((await browser.stopTracing()).toString());
  frames.sort((a, b) => a - b);
  const script = scripts(trace);
  console.log(
    `${name.padEnd(34)} ${String(frames.length).padStart(4)} frames in ${round(seconds)} s: p50 ${quantile(frames, 0.5)} p95 ${quantile(frames, 0.95)} p99 ${quantile(frames, 0.99)} ms; ` +
      `scripting of a frame p50 ${quantile(script.frames, 0.5)} p95 ${quantile(script.frames, 0.95)} p99 ${quantile(script.frames, 0.99)}, longest piece ${quantile(script.pieces, 1)} ms`,
  );
}

async function opened(browser, page, address, name, shown) {
  // Loading is a scene too, which begins on an empty page.
  await page.goto(`${address}/ui/servers`);
  await page.locator("main h1").waitFor();
  const began = performance.now();
  await measured(browser, page, `${name}: opens`, async () => {
    await page.locator(".side").getByRole("link", { name, exact: true }).click();
    await shown();
  });
  const took = round((performance.now() - began) / 1000);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const nodes = await page.evaluate(() => document.getElementsByTagName("*").length);
  console.log(`${"".padEnd(34)} ${took} s, ${Math.round(usedSize / 1048576)} MiB of scripts' memory, ${nodes} elements`);
}

async function wheel(page, steps, delta) {
  for (let step = 0; step < steps; step += 1) {
    await page.mouse.wheel(0, step < steps / 2 ? delta : -delta);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

async function hover(page, picture, steps) {
  const { x, y, width, height } = await picture.boundingBox();
  for (let step = 0; step < steps; step += 1) await page.mouse.move(x + (width * step) / steps, y + (height * ((step * 7) % steps)) / steps);
}

async function topology(browser, page, address) {
  const picture = page.getByRole("img", { name: /^Clients by/ });
  await opened(browser, page, address, "Topology", async () => {
    await picture.waitFor();
    await page.getByText("Not all allocations are read yet.").waitFor();
    await page.getByText("Not all allocations are read yet.").waitFor({ state: "detached", timeout: 300_000 });
  });
  console.log(`  ${await page.locator(".title .kind").innerText()}`);
  const run = (name, doing) => measured(browser, page, `Topology: ${name}`, doing);
  await picture.hover();
  await run("pan", () => wheel(page, 120, 60));
  await run("point", () => hover(page, picture, 200));
  await picture.hover();
  await run("zoom", async () => {
    await page.keyboard.down("Control");
    for (const delta of [1, 1, 1, -1, -1, -1, -1, -1, 1, 1, 1, 1]) await wheel(page, 4, -delta * 2);
    await page.keyboard.up("Control");
  });
  for (const [size, name] of ["dots", "tiny", "small", "middling", "with names", "with all"].entries()) {
    await page.getByRole("combobox", { name: "Size" }).selectOption(String(size));
    await picture.hover();
    await run(`pan, ${name}`, () => wheel(page, 60, 120));
  }
  await page.getByRole("combobox", { name: "Size" }).selectOption("2");
  await run("colour", async () => {
    for (let step = 0; step < 20; step += 1) {
      await page.getByRole("combobox", { name: "Colour by" }).selectOption(step % 2 ? "memory" : "cpu");
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  });
  await run("nothing, live", () => page.waitForTimeout(4000));
  await page.getByRole("slider").focus();
  await run("scrub", async () => {
    for (let step = 0; step < 40; step += 1) await page.keyboard.press("ArrowLeft");
    await page.waitForTimeout(3000);
  });
}

async function lanes(browser, page, address) {
  const picture = page.getByRole("img", { name: /^Allocations by client/ });
  await opened(browser, page, address, "Lanes", () => picture.waitFor({ timeout: 300_000 }));
  console.log(`  ${await page.locator("section h2").first().innerText()}`);
  const run = (name, doing) => measured(browser, page, `Lanes: ${name}`, doing);
  await picture.hover();
  await run("pan", () => wheel(page, 120, 120));
  await run("point", () => hover(page, picture, 200));
  await run("nothing, live", () => page.waitForTimeout(4000));
}

async function list(browser, page, address, name) {
  await opened(browser, page, address, name, () => page.locator("tbody tr").nth(20).waitFor({ timeout: 120_000 }));
  await measured(browser, page, `${name}: filter`, async () => {
    await page.getByRole("searchbox").pressSequentially("77", { delay: 60 });
    await page.waitForTimeout(1500);
    await page.getByRole("searchbox").fill("");
    await page.waitForTimeout(1500);
  });
  await measured(browser, page, `${name}: scroll, next pages`, async () => {
    await page.locator("tbody").first().hover();
    await wheel(page, 60, 400);
    for (let step = 0; step < 4; step += 1) {
      const more = page.getByRole("button", { name: "Next page" });
      if ((await more.isVisible()) && (await more.isEnabled())) await more.click();
      await page.waitForTimeout(700);
    }
  });
  await measured(browser, page, `${name}: nothing, live`, () => page.waitForTimeout(3000));
  const nodes = await page.evaluate(() => document.getElementsByTagName("*").length);
  console.log(`${"".padEnd(34)} ${nodes} elements`);
}

const scenes = {
  topology,
  lanes,
  ...Object.fromEntries(["Jobs", "Allocations", "Evaluations", "Clients"].map((name) => [name.toLowerCase(), (browser, page, address) => list(browser, page, address, name)])),
};

const own = values.at ? null : await Agent.start();
const fleet = own && (await fill(own));
const browser = await launch();
try {
  console.log(`${cpus().length} processors, ${browser.version()} without a graphics processor`);
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  await fromSources(context);
  for (const [name, scene] of Object.entries(scenes)) {
    if (positionals.length && !positionals.includes(name)) continue;
    const page = await context.newPage();
    page.on("pageerror", (error) => console.log(error.message));
    await scene(browser, page, values.at ?? own.address);
    await page.close();
  }
} finally {
  await browser.close();
  fleet?.kill("SIGKILL");
  await own?.stop();
}
