import assert from "node:assert/strict";
import { Agent, until } from "../agent.mjs";
import { Provider } from "../provider.mjs";

export const refusals = [403];

/** Logging in at a provider of identities and with one of its tokens; what was refused there is said here. */
export default async function ({ page, accessible }) {
  const agent = await Agent.start("acl {\n  enabled = true\n}\n");
  const provider = await Provider.start();
  try {
    const { SecretID } = await until("it is bootstrapped", () => agent.ask("/v1/acl/bootstrap", {}));
    const asRoot = { token: SecretID };
    await agent.ask("/v1/acl/policy/readers", { Name: "readers", Rules: 'node { policy = "read" }' }, asRoot);
    await agent.ask("/v1/acl/auth-method", provider.method(`${agent.address}/ui/settings/tokens`), asRoot);
    await agent.ask("/v1/acl/auth-method", provider.jwtMethod(), asRoot);
    for (const AuthMethod of ["sso", "ci"]) {
      await agent.ask("/v1/acl/binding-rule", { AuthMethod, BindType: "policy", BindName: "readers", Selector: "value.user == alice" }, asRoot);
    }

    await page.goto(`${agent.address}/ui/clients`);
    await page.getByText("Not allowed.").waitFor();
    await page.getByRole("button", { name: "Enter a token" }).click();
    provider.refuses = "not today";
    await page.getByRole("button", { name: "Log in with sso" }).click();
    await page.getByText("Log in: not today").waitFor();
    assert.equal(new URL(page.url()).search, "");

    provider.refuses = "";
    await page.goto(`${agent.address}/ui/clients`);
    await page.getByRole("button", { name: "Enter a token" }).click();
    await accessible();
    await page.getByRole("button", { name: "Log in with sso" }).click();
    // Back where the login was begun, with the rights of the rule.
    await page.getByRole("link", { name: "one", exact: true }).waitFor();
    assert.equal(page.url(), `${agent.address}/ui/clients`);
    const tokens = await agent.ask("/v1/acl/tokens", undefined, asRoot);
    assert.deepEqual(tokens.map((one) => one.Name).sort(), ["Bootstrap Token", "OIDC-sso"]);

    const other = await page.context().newPage();
    await other.goto(`${agent.address}/ui/clients`);
    await other.getByRole("button", { name: "Token", exact: true }).click();
    await other.getByLabel("Its token (JWT)").fill("no token at all");
    await other.getByRole("button", { name: "Log in", exact: true }).click();
    await other.getByText(/^Log in: /).waitFor();
    await other.getByLabel("Its token (JWT)").fill(provider.token({}));
    await other.getByRole("button", { name: "Log in", exact: true }).click();
    await other.getByRole("link", { name: "one", exact: true }).waitFor();

    // An answer to a login that this tab did not begin is none.
    const third = await page.context().newPage();
    await third.goto(`${agent.address}/ui/settings/tokens?code=c&state=s`);
    await third.getByText("this tab has begun no login").waitFor();
    assert.equal(new URL(third.url()).search, "");
    await other.close();
    await third.close();
  } finally {
    // Nothing is left that asks an agent which is gone.
    await page.goto("about:blank");
    await agent.stop();
    await provider.stop();
  }
}
