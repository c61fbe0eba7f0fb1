import { WEB, until } from "../agent.mjs";

/** A canary is promoted, another one is failed. */
export default async function ({ page, agent, open, accessible }) {
  const canary = () =>
    until("a healthy canary of the newest version", async () => {
      const { Version } = await agent.ask("/v1/job/web");
      const isOne = ({ JobVersion, DeploymentStatus }) => JobVersion === Version && DeploymentStatus?.Canary && DeploymentStatus.Healthy;
      return (await agent.allocs("web")).some(isOne);
    });
  await agent.run(WEB("second"));
  await canary();
  await open("jobs/web@default/deployments");
  await page.getByText("1 of 1").waitFor();
  await accessible();
  await page.getByRole("button", { name: "Promote" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
  await page.getByText("1 of 1, promoted").waitFor();
  await until("it has ended well", async () => (await agent.ask("/v1/job/web/deployments")).every((one) => one.Status === "successful"));
  await page.getByRole("button", { name: "Fail" }).waitFor({ state: "hidden" });
  await agent.run(WEB("third"));
  await canary();
  await page.getByRole("button", { name: "Fail" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Fail" }).click();
  await page.getByText("failed", { exact: true }).first().waitFor();
}
