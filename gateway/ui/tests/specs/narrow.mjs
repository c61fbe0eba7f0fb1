import assert from "node:assert/strict";

/** On a narrow phone nothing hangs over the side. */
export default async function ({ page, agent, open, accessible }) {
  await page.setViewportSize({ width: 390, height: 800 });
  const [alloc] = await agent.allocs("web");
  for (const path of ["jobs", "jobs/web@default", "jobs/run", `allocations/${alloc.ID}`, `allocations/${alloc.ID}/logs`, "clients", "events", "lanes", "topology"]) {
    await open(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${path} is ${over} pixels too wide`);
  }
  await accessible();
}
