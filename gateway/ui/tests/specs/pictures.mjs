import assert from "node:assert/strict";

/** The pictures are drawn, say in words what they show, and lead where one clicks. */
export default async function ({ page, open, accessible }) {
  const colors = (picture) =>
    picture.evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let place = 0; place < data.length; place += 4) seen.add(`${data[place]},${data[place + 1]},${data[place + 2]},${data[place + 3]}`);
      return seen.size;
    });
  await open("lanes");
  await page.getByRole("combobox", { name: "Show" }).selectOption("900");
  const lanes = page.getByRole("img", { name: /^Allocations by client/ });
  await lanes.waitFor();
  assert.match(await lanes.getAttribute("aria-label"), /one: ready, .*running/);
  assert.ok((await colors(lanes)) > 4);
  await accessible();
  const { width } = await lanes.boundingBox();
  await lanes.hover({ position: { x: width - 3, y: 31 } });
  await page.getByText(/\(.{8}\) (running|complete)/).waitFor();
  await lanes.click({ position: { x: width - 3, y: 31 } });
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.match(page.url(), /\/ui\/allocations\/[0-9a-f-]{36}\/history/);

  await open("topology");
  const boxes = page.getByRole("img", { name: /^Clients by memory/ });
  await boxes.waitFor();
  assert.ok((await colors(boxes)) > 3);
  await accessible();
  await boxes.click({ position: { x: 20, y: 20 } });
  await page.getByRole("heading", { name: /^one/ }).waitFor();
}
