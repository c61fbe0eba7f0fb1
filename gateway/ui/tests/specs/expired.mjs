import assert from "node:assert/strict";
import { Agent, until } from "../agent.mjs";

export const refusals = [403];

const LIFE = "6s";

/** A token that expires while somebody works: the page says so, keeps what was shown and filled in, and goes on with another one. */
export default async function ({ page, accessible }) {
  const agent = await Agent.start('acl {\n  enabled = true\n  token_min_expiration_ttl = "1s"\n}\n');
  try {
    const { SecretID } = await until("it is bootstrapped", () => agent.ask("/v1/acl/bootstrap", {}));
    const asRoot = { token: SecretID };
    const policy = { Name: "operators", Rules: 'node { policy = "write" }\nnamespace "*" { policy = "read" }' };
    await agent.ask("/v1/acl/policy/operators", policy, asRoot);
    const token = (more) => agent.ask("/v1/acl/token", { Type: "client", Name: "o", Policies: ["operators"], ...more }, asRoot);
    const use = async (secret) => {
      await page.getByLabel(/Secret ID/).fill(secret);
      await page.getByRole("button", { name: "Use it" }).click();
    };
    const [node] = await until("a node is ready", async () => {
      const nodes = await agent.ask("/v1/nodes", undefined, asRoot);
      return nodes[0]?.Status === "ready" && nodes;
    });
    await page.goto(`${agent.address}/ui/clients/${node.ID}`);
    await page.getByRole("button", { name: "Token", exact: true }).click();
    const short = await token({ ExpirationTTL: LIFE });
    await use(short.SecretID);
    await page.getByRole("heading", { name: /^one/ }).waitFor();
    await page.evaluate(() => (globalThis.isSame = true));

    // Something is filled in, and sent too late.
    await page.getByRole("button", { name: "Drain…" }).click();
    await page.getByLabel(/^Minutes until/).fill("17");
    const gone = () => agent.ask("/v1/acl/token/self", undefined, { token: short.SecretID }).then(() => false, () => true);
    await until("it has expired", gone);
    await page.getByRole("button", { name: "Drain", exact: true }).click();
    await page.getByRole("heading", { name: "Token", exact: true }).waitFor();
    await accessible();
    await use((await token({ ExpirationTTL: LIFE })).SecretID);
    assert.equal(await page.getByLabel(/^Minutes until/).inputValue(), "17");
    await page.getByRole("button", { name: "Drain", exact: true }).click();
    await until("it is drained", async () => (await agent.ask("/v1/nodes", undefined, asRoot))[0].SchedulingEligibility === "ineligible");

    // The second one expires while nothing is done: the page finds out by itself, and what was shown stays.
    await page.getByText("Your token is not good any more.").waitFor({ timeout: 60000 });
    await page.getByText(/ACL token (expired|not found)/).first().waitFor();
    await page.getByRole("heading", { name: /^one/ }).waitFor();
    await accessible();
    await page.getByRole("button", { name: "Log in again" }).click();
    await use((await token({})).SecretID);
    await page.getByText("Your token is not good any more.").waitFor({ state: "detached" });
    await page.getByLabel("Connection: live").waitFor();
    await page.getByRole("button", { name: "Make eligible" }).click();
    await page.getByRole("heading", { name: /ready/ }).waitFor();
    assert.ok(await page.evaluate(() => globalThis.isSame), "the page was loaded again");
    assert.match(page.url(), /\/ui\/clients\//);
  } finally {
    // Nothing is left that asks an agent which is gone.
    await page.goto("about:blank");
    await agent.stop();
  }
}
