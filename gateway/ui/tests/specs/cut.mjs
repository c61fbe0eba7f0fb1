import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { until } from "../agent.mjs";

/** What the browser itself says of a server that is not there. */
export const cuts = /^Failed to load resource: net::ERR_/;

/** A line to the agent that can be cut. */
class Line {
  static async to(address) {
    const line = new Line();
    const { hostname, port } = new URL(address);
    line.both = new Set();
    line.isCut = false;
    line.server = createServer((socket) => {
      if (line.isCut) return void socket.destroy();
      const onward = connect(Number(port), hostname);
      for (const [one, other] of [[socket, onward], [onward, socket]]) {
        line.both.add(one);
        one.pipe(other);
        one.on("error", () => other.destroy());
        one.on("close", () => (other.destroy(), line.both.delete(one)));
      }
    });
    await new Promise((resolve) => line.server.listen(0, "127.0.0.1", resolve));
    line.address = `http://127.0.0.1:${line.server.address().port}`;
    return line;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.both) socket.destroy();
  }

  async close() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** A connection that breaks: the page says so, keeps what it shows, and then goes on where the stream was cut. */
export default async function ({ page, agent, accessible }) {
  const line = await Line.to(agent.address);
  const put = (path) => agent.ask(`/v1/var/${path}`, { Path: path, Items: { a: "b" } });
  try {
    await page.goto(`${line.address}/ui/events`);
    await page.getByLabel("Connection: live").waitFor();
    await page.evaluate(() => (globalThis.isSame = true));
    await put("cut/before");
    await page.getByText("cut/before").waitFor();
    line.cut();
    await page.getByLabel("Connection: no answer").waitFor();
    await page.getByText(/^No answer since \d\d:/).waitFor();
    assert.equal(await page.getByText("cut/before").count(), 1);
    await accessible();
    await put("cut/meanwhile");
    line.isCut = false;
    await page.getByLabel("Connection: live").waitFor();
    await page.getByText("cut/meanwhile").waitFor();
    await page.getByText(/^No answer since/).waitFor({ state: "detached" });
    await put("cut/after");
    await page.getByText("cut/after").waitFor();
    assert.equal(await page.getByText("cut/before").count(), 1);

    // A list that was shown stays, and is of now again.
    await page.getByRole("link", { name: "Variables" }).click();
    await page.getByRole("link", { name: "cut/before" }).waitFor();
    line.cut();
    await page.getByText(/^No answer since \d\d:/).waitFor();
    await page.getByRole("link", { name: "cut/before" }).waitFor();
    await agent.ask("/v1/var/cut/before", undefined, { method: "DELETE" });
    line.isCut = false;
    await page.getByRole("link", { name: "cut/before" }).waitFor({ state: "detached" });
    await until("all is well", async () => (await page.getByText(/^No answer since/).count()) === 0);
    assert.ok(await page.evaluate(() => globalThis.isSame), "the page was loaded again");
  } finally {
    await page.goto("about:blank");
    await line.close();
    for (const path of ["cut/before", "cut/meanwhile", "cut/after"]) await agent.ask(`/v1/var/${path}`, undefined, { method: "DELETE" });
  }
}
