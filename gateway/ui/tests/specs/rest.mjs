import assert from "node:assert/strict";

/** Services, variables, volumes, namespaces. */
export default async function ({ page, agent, open, accessible }) {
  await open("services");
  await page.getByRole("main").getByRole("link", { name: "web" }).click();
  await page.getByText(/127\.0\.0\.1:\d+/).first().waitFor();
  await accessible();

  await open("variables");
  await page.getByRole("link", { name: "nomad/jobs/web" }).click();
  await page.getByText("password").waitFor();
  assert.equal(await page.getByText("hush").count(), 0);
  await page.getByRole("button", { name: "Show values" }).click();
  await page.getByText("hush").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Change…" }).click();
  await page.getByLabel("Items, a line each").fill("password=loud");
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await page.getByText("loud").waitFor();
  assert.deepEqual((await agent.ask("/v1/var/nomad/jobs/web")).Items, { password: "loud" });
  await page.getByRole("button", { name: "Version 0" }).click();
  await page.getByRole("region", { name: "Items of version 0" }).getByText("hush").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Revert to 0" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revert to 0" }).click();
  await page.getByRole("button", { name: "Version 1" }).waitFor();
  assert.deepEqual((await agent.ask("/v1/var/nomad/jobs/web")).Items, { password: "hush", user: "admin" });
  await open("variables/var/nomad/jobs/web@default");
  await page.getByRole("heading", { name: "nomad/jobs/web" }).waitFor();
  await open("variables");
  await page.getByRole("button", { name: "New variable…" }).click();
  await page.getByLabel("Path").fill("made/here");
  await page.getByLabel("Items, a line each").fill("no equals sign");
  await page.getByRole("button", { name: "New variable", exact: true }).click();
  await page.getByText("expected NAME=VALUE").waitFor();
  await page.getByLabel("Items, a line each").fill("a=b=c");
  await page.getByRole("button", { name: "New variable", exact: true }).click();
  await page.getByRole("heading", { name: "made/here" }).waitFor();
  assert.deepEqual((await agent.ask("/v1/var/made/here")).Items, { a: "b=c" });

  await open("volumes");
  await page.getByText("No host volumes.").waitFor();
  await page.getByText("No csi volumes.").waitFor();
  await accessible();

  await open("namespaces");
  await page.getByText("before it counts").waitFor();
  await page.getByRole("button", { name: "New namespace…" }).click();
  await page.getByLabel("Name", { exact: true }).fill("made");
  await page.getByRole("button", { name: "New namespace", exact: true }).click();
  await page.getByRole("cell", { name: "made", exact: true }).waitFor();
  await accessible();
}
