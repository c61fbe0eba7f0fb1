import assert from "node:assert/strict";
import { Agent, until } from "../agent.mjs";

export const refusals = [400, 403, 404];

/** Policies, roles and tokens are made, looked at, changed and deleted. */
export default async function ({ page, accessible }) {
  const agent = await Agent.start("acl {\n  enabled = true\n}\n");
  try {
    const { SecretID } = await until("it is bootstrapped", () => agent.ask("/v1/acl/bootstrap", {}));
    const asRoot = { token: SecretID };
    const useToken = async (name, secret) => {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByLabel(/Secret ID/).fill(secret);
      await page.getByRole("button", { name: "Use it" }).click();
    };
    await page.goto(`${agent.address}/ui/access-control`);
    await page.getByText("Not allowed.").waitFor();
    await useToken("Token", SecretID);
    await page.getByRole("link", { name: "Policies" }).click();
    await page.getByText("No policies.").waitFor();

    await page.getByRole("button", { name: "New policy…" }).click();
    await page.getByLabel("Name", { exact: true }).fill("readers");
    await page.getByLabel("Rules").fill("node {");
    await page.getByRole("button", { name: "New policy", exact: true }).click();
    await page.getByText(/^New policy: /).waitFor();
    await page.getByLabel("Rules").fill('node {\n  policy = "read"\n}\n');
    await page.getByRole("button", { name: "New policy", exact: true }).click();
    await page.getByRole("heading", { name: "readers" }).waitFor();
    await accessible();
    await page.getByRole("button", { name: "Change…" }).click();
    await page.getByLabel("Description").fill("look, do not touch");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByText("look, do not touch").waitFor();
    const policy = await agent.ask("/v1/acl/policy/readers", undefined, asRoot);
    assert.deepEqual([policy.Description, policy.Rules], ["look, do not touch", 'node {\n  policy = "read"\n}\n']);

    await page.getByRole("link", { name: "Access control" }).click();
    await page.getByRole("link", { name: "Roles" }).click();
    await page.getByRole("button", { name: "New role…" }).click();
    await page.getByLabel("Name", { exact: true }).fill("on-call");
    await page.getByRole("checkbox", { name: "readers" }).check();
    await page.getByRole("button", { name: "New role", exact: true }).click();
    await page.getByRole("cell", { name: "on-call", exact: true }).waitFor();
    await accessible();

    await page.getByRole("link", { name: "Tokens" }).click();
    await page.getByRole("button", { name: "New token…" }).click();
    await page.getByLabel("Name", { exact: true }).fill("anna");
    await page.getByRole("checkbox", { name: "on-call" }).check();
    await page.getByLabel(/Expires after/).fill("8h");
    await page.getByRole("button", { name: "New token", exact: true }).click();
    await page.getByText("Token “anna” was made.").waitFor();
    const secret = await page.locator(".note .mono").innerText();
    await accessible();
    const own = await agent.ask("/v1/acl/token/self", undefined, { token: secret });
    assert.deepEqual([own.Name, own.Type, own.Roles.map((role) => role.Name), own.ExpirationTTL], ["anna", "client", ["on-call"], "8h0m0s"]);
    await page.getByRole("button", { name: "Hide it" }).click();
    assert.equal(await page.getByText(secret).count(), 0);

    // Who has the role sees clients, and none of this.
    await useToken("Token set", secret);
    await page.getByText("Not allowed.").waitFor();
    await page.getByRole("link", { name: "Clients" }).click();
    await page.getByRole("link", { name: "one", exact: true }).waitFor();

    await useToken("Token set", SecretID);
    await page.getByRole("link", { name: "Access control" }).click();
    await page.getByRole("button", { name: "Delete anna" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete anna" }).click();
    await until("the token is gone", async () => (await agent.ask("/v1/acl/tokens", undefined, asRoot)).length === 1);
    await page.getByRole("link", { name: "Login" }).click();
    await page.getByText("People log in with tokens alone.").waitFor();
    await accessible();
  } finally {
    // Nothing is left that asks an agent which is gone.
    await page.goto("about:blank");
    await agent.stop();
  }
}
