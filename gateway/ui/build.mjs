// Builds `page/` into `dist/`: the same bytes from the same sources, wherever it runs.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";

const out = process.argv[2] ?? "dist";
rmSync(out, { recursive: true, force: true });
mkdirSync(`${out}/assets`, { recursive: true });
await build({
  entryPoints: { app: "page/main.tsx" },
  outdir: `${out}/assets`,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});
copyFileSync("page/index.html", `${out}/index.html`);
copyFileSync("page/icon.svg", `${out}/assets/icon.svg`);
