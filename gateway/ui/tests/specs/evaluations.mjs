import { until } from "../agent.mjs";

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

  // Of a cluster that is only recorded, what its scheduler saw is recomputed.
  const recorder = await agent.recording();
  try {
    await until("the job is recorded", async () => (await recorder.ask("/v1/jobs")).some((job) => job.ID === "too-big"));
    await page.goto(`${recorder.address}/ui/jobs/too-big@default/why`);
    await page.getByText("Approximate.").waitFor();
    await page.getByText(`recomputed from the state that was observed of ${agent.address}`).waitFor();
    await accessible();
  } finally {
    await page.goto("about:blank");
    await recorder.stop();
  }
}
