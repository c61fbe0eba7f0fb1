/** Why a job found no place, and what would help. */
export default async function ({ page, agent, open, accessible }) {
  await open("evaluations");
  await page.getByLabel("Status").selectOption("blocked");
  await page.getByRole("link", { name: "too-big" }).waitFor();
  await accessible();
  const evals = await agent.ask("/v1/job/too-big/evaluations");
  const { ID } = evals.find((one) => one.Status === "blocked");
  // As the command line points there.
  await open(`evaluations?currentEval=${ID}`);
  await page.getByText("Would fit if").waitFor();
  await page.getByText(/MiB short \(asked 9,000,000/).waitFor();
  await accessible();
  await open("jobs/too-big@default/why");
  await page.getByText("Waits for").waitFor();
  await page.getByText("Would fit if").waitFor();
  await accessible();
}
