import assert from "node:assert/strict";

export const refusals = [404];

/** A change is tried out, from a client and from words; nothing comes of it. */
export default async function ({ page, agent, open, accessible }) {
  const before = await agent.allocs("web");
  await open("clients");
  await page.getByRole("main").getByRole("link", { name: "one", exact: true }).click();
  await page.getByRole("link", { name: "What if it is drained?" }).click();
  await page.getByRole("button", { name: "Try it" }).click();
  await page.getByText(/drain one: .*2 without a node/).waitFor();
  await page.getByRole("region", { name: "Groups without a node" }).getByRole("link", { name: "web" }).waitFor();
  await page.getByRole("region", { name: "Free" }).getByText("1 → 0").waitFor();
  await accessible();

  const words = page.getByLabel("What is to be tried");
  const attempt = async (text) => {
    await words.fill(text);
    await page.getByRole("button", { name: "Try it" }).click();
  };
  await attempt("drain");
  await page.getByText("“drain”: expected drain NODE").waitFor();
  await attempt("scale web front many");
  await page.getByText("expected a whole number where “many” stands").waitFor();
  await attempt("drain nobody");
  await page.getByRole("alert").getByText(/nobody/).waitFor();
  await attempt("add 1 like one and drain one");
  await page.getByText(/add 1 like one and drain one: .*2 moved/).waitFor();
  await page.getByRole("region", { name: "Moved allocations" }).getByText("one-new-1").first().waitFor();
  assert.match(page.url(), /try=add\+1\+like\+one\+and\+drain\+one/);

  const ids = (list) => list.map((alloc) => `${alloc.ID} ${alloc.DesiredStatus}`).sort();
  assert.deepEqual(ids(await agent.allocs("web")), ids(before));
}
