import assert from "node:assert/strict";

/** What was, what comes, facets, a pause, and the JSON. */
export default async function ({ page, agent, open, accessible, browser }) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: agent.address });
  await open("events");
  await page.getByText("JobRegistered").first().waitFor();
  await accessible();
  await page.getByRole("button", { name: /^Variable \d/ }).click();
  await page.getByLabel("Connection: live").waitFor();
  const put = (path) => agent.ask(`/v1/var/${path}`, { Path: path, Items: { a: "b" } });
  await put("live/one");
  await page.getByText("live/one").waitFor();
  assert.equal(await page.getByText("JobRegistered").count(), 0);
  await page.getByRole("button", { name: "Pause" }).click();
  await put("live/two");
  await page.getByLabel("Filter events").fill("live/");
  assert.equal(await page.getByText("live/two").count(), 0);
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("live/two").click();
  await page.getByText('"Topic": "Variable"').waitFor();
  await accessible();
  await page.getByRole("button", { name: "Copy as curl" }).first().click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^curl -N -H "X-Nomad-Token: \$NOMAD_TOKEN" .*topic=Variable/);
  assert.ok(browser.isConnected());
}
