import assert from "node:assert/strict";
import { createServer } from "node:http";
import { until } from "../agent.mjs";

export const refusals = [400];

/** A sink is parked, retried, paused and deleted; a cursor is moved. */
export default async function ({ page, agent, open, accessible }) {
  let refuses = true;
  const got = [];
  const receiver = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      if (!refuses) got.push(request.url);
      response.writeHead(refuses ? 503 : 204).end();
    });
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  try {
    const sink = { Kind: "webhook", URL: `http://127.0.0.1:${receiver.address().port}/hook`, From: "oldest", Topics: ["Job"], Namespace: "*", MaxAttempts: 1 };
    await agent.ask("/v1/event/sink/billing", sink);
    const collector = (Signal) => ({ Kind: "otlp", URL: `http://127.0.0.1:9/v1/${Signal}`, Signal, SecretVariable: "sinks/otel", Namespace: "*" });
    for (const signal of ["logs", "traces"]) await agent.ask(`/v1/event/sink/otel-${signal}`, collector(signal));
    await agent.ask("/v1/event/cursor/audit", { From: "oldest", Topics: ["Job"] });
    await until("it is parked", async () => (await agent.ask("/v1/event/sink/billing")).Status === "parked");

    await open("delivery");
    await page.getByRole("cell", { name: "audit", exact: true }).waitFor();
    await accessible();
    await page.getByRole("button", { name: "Move audit…" }).click();
    await page.getByLabel(/^To:/).fill("never");
    await page.getByRole("button", { name: "Move audit", exact: true }).click();
    await page.getByText(/^Move audit: .*To/).waitFor();
    await page.getByLabel(/^To:/).fill("now");
    await page.getByRole("button", { name: "Move audit", exact: true }).click();
    await until("it has moved", async () => (await agent.ask("/v1/event/cursor/audit")).LagBatches === 0);

    // What a collector is sent, logs or traces, and what else the sink was made with.
    await page.getByRole("cell", { name: "otlp, logs" }).waitFor();
    await page.getByRole("cell", { name: "otlp, traces" }).waitFor();
    await page.getByRole("link", { name: "otel-traces" }).click();
    await page.getByText("Sink of kind otlp, traces").waitFor();
    const settings = await page.getByRole("heading", { name: "Settings" }).locator("xpath=ancestor::section").innerText();
    for (const line of ["Signal\ntraces", "Secrets\nsinks/otel", "Attempts for one event\n10", "An attempt may take\n30s"]) {
      assert.ok(settings.includes(line), `${line} is not in ${settings}`);
    }
    await accessible();
    for (const signal of ["logs", "traces"]) await agent.ask(`/v1/event/sink/otel-${signal}`, undefined, { method: "DELETE" });

    await page.getByRole("link", { name: "Sinks", exact: true }).click();
    await page.getByRole("link", { name: "billing" }).click();
    await page.getByText(/did not get through in 1 attempt/).waitFor();
    await accessible();
    refuses = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByRole("heading", { name: /billing running/ }).waitFor();
    await until("events arrive", () => got.length > 0);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("heading", { name: /billing paused/ }).waitFor();
    assert.equal((await agent.ask("/v1/event/sink/billing")).Status, "paused");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No sinks.").waitFor();
    await agent.ask("/v1/event/cursor/audit", undefined, { method: "DELETE" });
  } finally {
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
  }
}
