import assert from "node:assert/strict";

export const refusals = [404, 500];

/** Tasks, logs that follow, files, a terminal, reasons, and what can be done. */
export default async function ({ page, agent, open, accessible }) {
  await open("allocations");
  await page.getByLabel("Filter allocations").fill("web.front");
  await page.getByLabel("Status").selectOption("running");
  await accessible();
  const allocs = await agent.allocs("web");
  const { ID } = allocs.find((alloc) => alloc.ClientStatus === "running");
  await page.getByRole("link", { name: ID.slice(0, 8) }).click();
  await page.getByText("Task started by client").first().waitFor();
  await page.getByText(/127\.0\.0\.1:\d+/).waitFor();
  await accessible();

  await page.getByRole("link", { name: "Logs" }).click();
  const log = page.getByRole("log");
  const last = async () => Number((await log.innerText()).trim().split(" ").at(-1));
  await page.waitForFunction(() => / \d+\n/.test(document.querySelector(".log")?.textContent ?? ""));
  const seen = await last();
  // It follows.
  await page.waitForFunction((number) => Number(document.querySelector(".log").textContent.trim().split(" ").at(-1)) > number + 2, seen);
  await accessible();
  await page.getByLabel("Filter lines").fill("no such line");
  await page.waitForFunction(() => document.querySelector(".log").textContent === "");

  await page.getByRole("link", { name: "Files" }).click();
  await page.getByRole("button", { name: "alloc/" }).click();
  await page.getByRole("button", { name: "logs/" }).click();
  await page.getByRole("button", { name: "server.stdout.0" }).click();
  await page.getByRole("region", { name: /Content of/ }).waitFor();
  await accessible();

  await page.getByRole("link", { name: "Terminal" }).click();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByLabel("A line for the command").fill("echo $((40 + 2)) here");
  await page.keyboard.press("Enter");
  await page.getByText("42 here").waitFor();
  await page.getByLabel("A line for the command").fill("exit 3");
  await page.keyboard.press("Enter");
  await page.getByText("[ended with 3]").waitFor();
  await accessible();

  await page.getByRole("link", { name: "Why" }).click();
  await page.getByText("Why on this node").waitFor();
  await accessible();
  await page.getByRole("link", { name: "History" }).click();
  await page.getByText("pending → running").waitFor();

  await page.getByRole("button", { name: "Signal…" }).click();
  await page.getByLabel("Signal").last().fill("SIGNONE");
  await page.getByRole("button", { name: "Signal", exact: true }).click();
  await page.getByText(/Signal: .*SIGNONE/).waitFor();
  await page.getByRole("button", { name: "Leave it" }).click();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("button", { name: "Restart" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
  await page.getByText("1 restart").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("heading", { name: /complete/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Restart" }).count(), 0);
}
