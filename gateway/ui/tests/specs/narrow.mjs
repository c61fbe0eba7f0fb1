import assert from "node:assert/strict";
/** Without access control there is nothing of it to show. */
export const refusals = [400];


/** On a narrow phone nothing hangs over the side, in any view, and all of it can be used by everybody. */
export default async function ({ page, agent, open, accessible }) {
  await page.setViewportSize({ width: 390, height: 800 });
  const [alloc] = await agent.allocs("web");
  const [node] = await agent.ask("/v1/nodes");
  const [evaluation] = await agent.ask("/v1/job/too-big/evaluations");
  const job = (part) => `jobs/web@default${part}`;
  const one = (part) => `allocations/${alloc.ID}${part}`;
  const views = [
    ...["jobs", "jobs/run", "jobs/too-big@default/why", "jobs/mail@default"],
    ...["", "/deployments", "/versions", "/definition", "/history"].map(job),
    "allocations",
    ...["", "/logs", "/files", "/terminal", "/why", "/history"].map(one),
    ...["evaluations", `evaluations/${evaluation.ID}`],
    ...["clients", `clients/${node.ID}`, `clients/${node.ID}/drivers`, `clients/${node.ID}/attributes`],
    ...["servers", "events", "lanes", "topology", "compare", "whatif", "delivery"],
    ...["services", "variables", `variables/${encodeURIComponent("nomad/jobs/web")}@default`, "volumes", "namespaces", "access-control"],
  ];
  await open("jobs");
  for (const path of views) {
    await page.evaluate((to) => {
      history.pushState(null, "", `/ui/${to}`);
      dispatchEvent(new PopStateEvent("popstate"));
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }, path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${path} is ${over} pixels too wide`);
    // Other specs have the colours.
    await accessible(["dark"]);
  }
}
