import assert from "node:assert/strict";
import { until } from "../agent.mjs";

/** Navigation, deep links, the namespace, the theme, the palette, the time line. */
export default async function ({ page, agent, open, accessible }) {
  await open("");
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  await page.getByLabel("Connection: live").waitFor();
  await accessible();
  // Every button has a name.
  for (const button of await page.getByRole("button").all()) {
    assert.ok((await button.getAttribute("aria-label")) || (await button.innerText()).trim());
  }

  // Links stay in the page, and the way back works.
  await page.getByRole("link", { name: "Clients" }).click();
  await page.getByRole("heading", { name: "Clients", level: 1 }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();

  // Another namespace has other jobs, and stands in the address.
  await page.getByLabel("Namespace").selectOption("staging");
  await page.getByText("No jobs yet.").waitFor();
  assert.equal(new URL(page.url()).searchParams.get("namespace"), "staging");
  await page.getByRole("link", { name: "Variables" }).click();
  assert.equal(new URL(page.url()).searchParams.get("namespace"), "staging");
  await page.getByLabel("Namespace").selectOption("*");

  // Dark and light.
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const before = await ground();
  await page.getByRole("button", { name: "Switch between dark and light" }).click();
  assert.notEqual(await ground(), before);
  await page.getByRole("button", { name: "Switch between dark and light" }).click();
  assert.equal(await ground(), before);

  // The palette finds a job, without the mouse.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /^Find/ }).fill("too-b");
  await page.getByRole("option", { name: "job too-big" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^too-big/ }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/ui/jobs/too-big%40default");

  // A moment before there were jobs, by its index: all of it is of then, and nothing can be changed.
  const nodes = await agent.ask("/v1/nodes");
  await open(`jobs?at=${nodes[0].CreateIndex}`);
  await page.getByText("The past: index").waitFor();
  await page.getByText("There were no jobs.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Run a job" }).isDisabled());
  await page.getByRole("link", { name: "Evaluations" }).click();
  await page.getByText("No evaluations.").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByRole("link", { name: "too-big" }).first().waitFor();

  // The time line goes there with the keyboard, and back.
  const line = page.getByRole("slider", { name: "The moment that is shown" });
  await line.focus();
  await page.keyboard.press("PageDown");
  await page.getByText("The past: 20").waitFor();
  assert.match(new URL(page.url()).searchParams.get("at"), /^20\d\d-/);
  await page.getByRole("button", { name: "Live" }).click();
  await until("the address is of now", () => new URL(page.url()).searchParams.get("at") === null);

  await open("nowhere");
  await page.getByText("There is no view called").waitFor();
}
