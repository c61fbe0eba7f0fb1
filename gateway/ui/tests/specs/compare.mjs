import assert from "node:assert/strict";
import { until } from "../agent.mjs";

export const refusals = [400];

/** What a stop did is seen between the moment before it and the one after. */
export default async function ({ page, agent, open, accessible }) {
  const index = async () => {
    const response = await fetch(`${agent.address}/v1/jobs`);
    return Number(response.headers.get("X-Nomad-Index"));
  };
  const newest = async () => {
    const response = await fetch(`${agent.address}/v1/jobs`, { headers: { "X-Sojourn-As-Of": "-0s" } });
    return Number(response.headers.get("X-Nomad-Index"));
  };
  const hcl = 'job "short-lived" {\n  group "g" {\n    task "t" {\n      driver = "raw_exec"\n      config {\n        command = "/bin/sleep"\n        args    = ["600"]\n      }\n    }\n  }\n}\n';
  const none = await index();
  await agent.run(hcl);
  const running = await until("it runs", async () => (await agent.allocs("short-lived")).find((alloc) => alloc.ClientStatus === "running"));
  const before = await index();
  await agent.ask("/v1/job/short-lived", undefined, { method: "DELETE" });
  await until("it has stopped", async () => (await agent.allocs("short-lived")).every((alloc) => alloc.ClientStatus === "complete"));

  await open(`compare?from=${before}`);
  // The newest of all, whatever it was about.
  await page.getByText(`to ${await newest()}:`).waitFor();
  const jobs = page.getByRole("region", { name: "Jobs" }).getByRole("row").filter({ hasText: "short-lived" });
  await jobs.getByText("running → dead").waitFor();
  await jobs.getByText("no → yes").waitFor();
  const allocs = page.getByRole("region", { name: "Allocations" }).getByRole("row").filter({ hasText: running.ID.slice(0, 8) });
  await allocs.getByText("running → complete").waitFor();
  await accessible();

  // Between moments that both are past: it is new. And from a moment to itself there is no difference.
  await open(`compare?from=${none}&at=${before}`);
  await jobs.getByText("new", { exact: true }).waitFor();
  await page.getByRole("link", { name: "What has changed since?" }).click();
  await jobs.getByText("running → dead").waitFor();
  assert.equal(new URL(page.url()).search, `?from=${before}`);
  await open(`compare?from=${before}&at=${before}`);
  await page.getByText(`From index ${before} to ${before}: nothing differs.`).waitFor();

  await page.getByLabel("From", { exact: true }).fill("yesterday");
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("alert").getByText(/Expected an index, a time or a span/).waitFor();
  assert.match(page.url(), /from=yesterday/);
  await agent.ask("/v1/job/short-lived?purge=true", undefined, { method: "DELETE" });
}
