import assert from "node:assert/strict";
import { Agent, until } from "../agent.mjs";

export const refusals = [403];

/** With access control: refused without a token, allowed with one, which is in no address and in no storage but the tab's. */
export default async function ({ page, accessible }) {
  const agent = await Agent.start("acl {\n  enabled = true\n}\n");
  try {
    // A cluster that has just begun has no key to seal a secret with yet.
    const { SecretID } = await until("it is bootstrapped", () => agent.ask("/v1/acl/bootstrap", {}));
    await page.goto(`${agent.address}/ui/clients`);
    await page.getByText("Not allowed.").waitFor();
    await accessible();
    await page.getByRole("button", { name: "Enter a token" }).click();
    await page.getByLabel(/Secret ID/).fill(SecretID);
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("link", { name: "one", exact: true }).waitFor();
    await page.getByLabel("Connection: live").waitFor();
    assert.equal(await page.getByText("Not allowed.").count(), 0);
    assert.ok(requests.length > 0 && requests.every((url) => !url.includes(SecretID)));
    assert.equal(await page.evaluate((secret) => JSON.stringify({ ...localStorage }).includes(secret) || document.cookie.includes(secret), SecretID), false);

    // A token for one use, as `sojourn ui -authenticate` gives it, is gone from the address.
    const { OneTimeToken } = await agent.ask("/v1/acl/token/onetime", {}, { token: SecretID });
    const other = await page.context().newPage();
    await other.goto(`${agent.address}/ui/clients?ott=${OneTimeToken.OneTimeSecretID}`);
    await other.getByRole("link", { name: "one", exact: true }).waitFor();
    assert.equal(new URL(other.url()).search, "");

    // One that may read jobs, and nothing else: what it may not see is left out, and said where it was asked for.
    const policy = { Name: "readers", Rules: 'namespace "default" { policy = "read" }' };
    await agent.ask("/v1/acl/policy/readers", policy, { token: SecretID });
    const reader = await agent.ask("/v1/acl/token", { Type: "client", Name: "r", Policies: ["readers"] }, { token: SecretID });
    const third = await page.context().newPage();
    await third.goto(`${agent.address}/ui/jobs`);
    await third.getByRole("button", { name: "Token", exact: true }).click();
    await third.getByLabel(/Secret ID/).fill(reader.SecretID);
    await third.getByRole("button", { name: "Use it" }).click();
    await third.getByText("No jobs yet.").waitFor();
    // It is told of jobs, and not of what it may not read.
    await third.getByLabel("Connection: live").waitFor();
    await agent.ask("/v1/jobs", { Job: { ID: "told", Name: "told", Type: "batch", Datacenters: ["nowhere"], TaskGroups: [{ Name: "g", Tasks: [{ Name: "t", Driver: "raw_exec", Config: { command: "/bin/true" } }] }] } }, { token: SecretID });
    await third.getByRole("link", { name: "told", exact: true }).waitFor({ timeout: 4000 });
    await third.getByRole("link", { name: "Events" }).click();
    await third.getByText("JobRegistered").first().waitFor();
    await third.getByText("marks need a management token").waitFor();
    assert.deepEqual(await third.locator(".denied").allInnerTexts(), []);
    await third.getByRole("link", { name: "Clients" }).click();
    await third.getByText("No clients to show.").or(third.getByText("No clients.")).first().waitFor();
    await third.close();

    // One that is no longer good.
    await page.getByRole("button", { name: "Token set" }).click();
    await page.getByLabel(/Secret ID/).fill("00000000-0000-0000-0000-000000000000");
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByText("ACL token not found").first().waitFor();
  } finally {
    // Nothing is left that asks an agent which is gone.
    await page.goto("about:blank");
    await agent.stop();
  }
}
