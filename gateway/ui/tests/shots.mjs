// Pictures of every view, dark and light, wide and narrow, for a person to look at: node tests/shots.mjs FOLDER

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Agent, WEB, fromSources, launch, populate, until } from "./agent.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("say into which folder");
mkdirSync(folder, { recursive: true });
const only = process.argv[3];
const agent = await Agent.start();
const browser = await launch();
try {
  await populate(agent);
  await agent.run(WEB("other"));
  await until("a canary", async () => (await agent.allocs("web")).some((alloc) => alloc.DeploymentStatus?.Canary && alloc.ClientStatus === "running"));
  // Somebody stops one, so that another takes its place.
  const stopped = (await agent.allocs("web")).find((alloc) => !alloc.DeploymentStatus?.Canary);
  await agent.ask(`/v1/allocation/${stopped.ID}/stop`, {});
  await until("it is replaced", async () => (await agent.allocs("web")).some((alloc) => alloc.ID === stopped.ID && alloc.ClientStatus === "complete"));
  const alloc = (await agent.allocs("web")).find((one) => one.ClientStatus === "running");
  const [node] = await agent.ask("/v1/nodes");
  const [evaluation] = await agent.ask("/v1/job/too-big/evaluations");
  await agent.ask("/v1/event/sink/hook", { Kind: "webhook", URL: "http://127.0.0.1:9/events", From: "oldest", Namespace: "*", MaxAttempts: 1 });
  await agent.ask("/v1/event/cursor/billing", { From: "oldest", Topics: ["Job", "Allocation"], Namespace: "*", TTL: "72h" });
  await until("a sink is parked", async () => (await agent.ask("/v1/event/sink/hook")).Status === "parked");
  const at = new Date(Date.now() - 2000).toISOString();
  const views = {
    jobs: "jobs",
    "jobs-past": `jobs?at=${at}`,
    run: "jobs/run",
    job: "jobs/web@default",
    "job-deployments": "jobs/web@default/deployments",
    "job-versions": "jobs/web@default/versions",
    "job-definition": "jobs/web@default/definition",
    "job-why": "jobs/too-big@default/why",
    mail: "jobs/mail@default",
    allocations: "allocations",
    allocation: `allocations/${alloc.ID}`,
    logs: `allocations/${alloc.ID}/logs`,
    files: `allocations/${alloc.ID}/files`,
    terminal: `allocations/${alloc.ID}/terminal`,
    "alloc-why": `allocations/${alloc.ID}/why`,
    "alloc-history": `allocations/${alloc.ID}/history`,
    evaluations: "evaluations",
    evaluation: `evaluations/${evaluation.ID}`,
    clients: "clients",
    client: `clients/${node.ID}`,
    drivers: `clients/${node.ID}/drivers`,
    servers: "servers",
    events: "events",
    lanes: "lanes",
    topology: "topology",
    services: "services",
    variables: "variables",
    variable: `variables/${encodeURIComponent("nomad/jobs/web")}@default`,
    volumes: "volumes",
    namespaces: "namespaces",
    whatif: "whatif?try=add 1 like one and drain one",
    delivery: "delivery",
    sink: "delivery/hook",
  };
  for (const colorScheme of ["dark", "light"]) {
    for (const width of [1280, 390]) {
      const context = await browser.newContext({ viewport: { width, height: 860 }, colorScheme });
      await fromSources(context);
      const page = await context.newPage();
      page.on("console", (message) => message.type() === "error" && console.log(message.text()));
      page.on("pageerror", (error) => console.log(error.message));
      for (const [name, path] of Object.entries(views)) {
        if (only && !name.startsWith(only)) continue;
        await page.goto(`${agent.address}/ui/${path}`);
        await page.locator("main h1").waitFor();
        await page.waitForTimeout(700);
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`), fullPage: width === 390 });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  await agent.stop();
}
