// Runs the specs, one a view, against a real agent: node tests/run.mjs [NAME…]
//
// A spec fails if what it expects does not come, if the page logs an error, or if axe finds something in either theme.

import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { Agent, fromSources, launch, populate } from "./agent.mjs";

const specs = new URL("specs/", import.meta.url);
const wanted = process.argv.slice(2);
const names = readdirSync(specs)
  .filter((name) => name.endsWith(".mjs"))
  .map((name) => name.slice(0, -4))
  .filter((name) => wanted.length === 0 || wanted.includes(name))
  .sort();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds in what is shown. */
async function accessible(page, themes = ["dark", "light"]) {
  await page.evaluate(axe);
  for (const colorScheme of themes) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const found = await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.target.join(" ")).slice(0, 3).join(" | ")}`);
    });
    if (found.length) throw new Error(`${page.url()} in ${colorScheme}: ${found.join("\n  ")}`);
  }
}

async function run(name, agent, browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" });
  await fromSources(context);
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  const errors = [];
  let expected = [];
  let allowed = null;
  page.on("pageerror", (error) => errors.push(error.message));
  // What the API refuses is logged by the browser itself, and so is a connection that breaks; specs that expect that say so in
  // `refusals` and `cuts`.
  const isExpected = (text) => expected.some((status) => text.includes(`status of ${status}`)) || allowed?.test(text);
  page.on("console", (message) => message.type() === "error" && !isExpected(message.text()) && errors.push(message.text()));
  try {
    const open = (path) => page.goto(`${agent.address}/ui/${path}`);
    const { default: spec, refusals = [], cuts = null } = await import(new URL(`${name}.mjs`, specs));
    expected = refusals;
    allowed = cuts;
    await spec({ page, agent, open, browser, accessible: (themes) => accessible(page, themes) });
    if (errors.length) throw new Error(`the page logged: ${errors.join("; ")}`);
  } catch (error) {
    const text = await page.locator("body").innerText().catch(() => "");
    throw new Error(`${error.message}\nat ${page.url()}, which shows:\n${text.slice(0, 3000)}`, { cause: error });
  } finally {
    await context.close();
  }
}

let failed = 0;
const agent = await Agent.start();
const browser = await launch();
try {
  await populate(agent);
  for (const name of names) {
    const began = performance.now();
    try {
      await run(name, agent, browser);
      console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}: ${error.message}`);
    }
  }
} finally {
  await browser.close();
  await agent.stop();
}
process.exit(failed ? 1 : 0);
