/** Who keeps the log. */
export default async function ({ page, open, accessible }) {
  await open("servers");
  await page.getByText("leader", { exact: true }).waitFor();
  await page.getByText("one.global").waitFor();
  await accessible();
}
