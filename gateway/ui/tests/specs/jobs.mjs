import assert from "node:assert/strict";
import { WEB, until } from "../agent.mjs";

export const refusals = [400];

/** The list and a job, from its text to its end. */
export default async function ({ page, agent, open, accessible }) {
  await open("jobs");
  await page.getByRole("link", { name: "web", exact: true }).waitFor();
  await page.getByText(/^\d running/).waitFor();
  await accessible();
  await page.getByLabel("Filter jobs").fill("too-b");
  await page.getByText("1 job", { exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "web", exact: true }).count(), 0);
  await page.getByLabel("Filter jobs").fill("");

  // What is wrong with a text is said; what it would change is shown; it runs.
  await page.getByRole("link", { name: "Run a job" }).click();
  const text = page.getByLabel("The definition of the job");
  await text.fill('job "x" {');
  await page.getByRole("button", { name: "Plan" }).click();
  await page.getByRole("alert").waitFor();
  assert.ok(await page.getByRole("button", { name: "Run", exact: true }).isDisabled());
  await text.fill(WEB("made").replace('job "web"', 'job "made"').replaceAll('"web"', '"made"').replace("canary           = 1", ""));
  await page.getByRole("button", { name: "Plan" }).click();
  await page.getByText("+ job made").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("heading", { name: /^made/ }).waitFor();
  // Without looking again: the page follows.
  await page.getByText("2 running").waitFor();
  await accessible();

  // Scale.
  await page.getByRole("button", { name: "Scale…" }).click();
  await page.getByLabel("Allocations of “front”").fill("3");
  await page.getByRole("button", { name: "Scale", exact: true }).click();
  await page.getByText("3 running").waitFor();

  // Versions with what differs between them, and the way back.
  await page.getByRole("button", { name: "Change" }).click();
  await until("the text is there", async () => (await text.inputValue()).includes("echo made"));
  await text.fill((await text.inputValue()).replace("echo made", "echo better").replace("count = 2", "count = 3"));
  await page.getByRole("button", { name: "Plan" }).click();
  await page.getByText("echo better").last().waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("link", { name: "Versions" }).click();
  await page.getByText("~ group front").first().waitFor();
  await accessible();
  await page.getByRole("button", { name: "Revert to 0" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revert to 0" }).click();
  await page.getByText("Revert to 0: done").waitFor();
  await page.getByRole("link", { name: "Definition" }).click();
  await page.getByText("As it is understood").waitFor();
  await accessible();
  await page.getByRole("link", { name: "History" }).click();
  await page.getByText("JobRegistered").first().waitFor();

  // Stop, and start again.
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Start", exact: true }).waitFor();
  await until("nothing runs", async () => (await agent.allocs("made")).every((alloc) => alloc.ClientStatus === "complete"));
}
