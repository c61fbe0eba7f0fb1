import { until } from "../agent.mjs";

/** A client is made ineligible, drained, and takes work again. */
export default async function ({ page, agent, open, accessible }) {
  await open("clients");
  await accessible();
  await page.getByRole("link", { name: "one", exact: true }).click();
  await page.getByText("Memory that is given away").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Make ineligible" }).click();
  await page.getByRole("heading", { name: /ineligible/ }).waitFor();
  await page.getByRole("link", { name: "Why" }).click();
  await page.getByRole("link", { name: "Drivers" }).click();
  await page.getByText("raw_exec").waitFor();
  await accessible();
  await page.getByRole("link", { name: "Attributes" }).click();
  await page.getByText("kernel.name").waitFor();
  await page.getByRole("button", { name: "Make eligible" }).click();
  await page.getByRole("heading", { name: /ready/ }).waitFor();
  await page.getByRole("button", { name: "Drain…" }).click();
  await accessible();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  // Nothing else can take what runs here, so that the drain ends when all of it is stopped.
  await page.getByRole("heading", { name: /draining|ineligible/ }).waitFor();
  await until("the drain is known", async () => (await agent.ask("/v1/nodes"))[0].SchedulingEligibility === "ineligible");
  const stop = page.getByRole("button", { name: "Stop draining" });
  const eligible = page.getByRole("button", { name: "Make eligible" });
  await stop.or(eligible).first().waitFor();
  if (await stop.isVisible()) {
    await stop.click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop draining" }).click();
  } else await eligible.click();
  await page.getByRole("heading", { name: /ready/ }).waitFor();
  await page.getByRole("link", { name: "History" }).click();
  await page.getByText("NodeDrain").or(page.getByText("Drain")).first().waitFor();
  await until("web runs again", async () => (await agent.allocs("web")).filter((alloc) => alloc.ClientStatus === "running").length >= 2);
}
