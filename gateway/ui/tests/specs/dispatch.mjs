/** A parameterized job is dispatched with what it asks for. */
export default async function ({ page, open, accessible }) {
  await open("jobs/mail@default");
  await page.getByRole("button", { name: "Dispatch…" }).click();
  await accessible();
  await page.getByLabel("who").fill("ann");
  await page.getByRole("button", { name: "Dispatch", exact: true }).click();
  await page.getByRole("heading", { name: /^mail\/dispatch-/ }).waitFor();
  await page.getByText("1 complete").waitFor();
  await page.getByRole("main").getByRole("link", { name: "mail", exact: true }).click();
  await page.getByRole("link", { name: /^dispatch-/ }).waitFor();
}
