// Bundles the sources into one script and one style sheet: node build.mjs OUTPUT INPUTS.
// The same sources and lock file give the same bytes, whatever the machine; INPUTS is their digest.
import { build } from "esbuild";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";

const [output, inputs] = process.argv.slice(2);

const options = {
  bundle: true,
  minify: true,
  charset: "ascii", // the page may be read in any encoding
  legalComments: "none", // the licences stand at the top, whole
  target: ["chrome103", "firefox113", "safari16.4"],
  metafile: true,
  logLevel: "warning",
};

const read = await build({
  ...options,
  entryPoints: ["src/main.js"],
  format: "iife",
  write: false,
  outdir: output,
});

await build({
  ...options,
  entryPoints: ["src/main.js"],
  format: "iife",
  entryNames: "explorer",
  outdir: output,
  banner: { js: `/* inputs ${inputs}\n\n${licences(read.metafile)}\n*/` },
});

await build({
  ...options,
  entryPoints: ["src/explorer.css"],
  outdir: output,
});

/** The licences of the packages that are part of the bundle, each text once. */
function licences(metafile) {
  const packages = new Set();
  for (const file of Object.keys(metafile.inputs)) {
    const parts = file.split("/");
    const at = parts.lastIndexOf("node_modules");
    if (at >= 0) {
      packages.add(parts.slice(0, at + (parts[at + 1].startsWith("@") ? 3 : 2)).join(sep));
    }
  }
  const texts = new Map();
  for (const folder of [...packages].sort()) {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file: ${dirname(folder)}`);
    const text = readFileSync(join(folder, file), "utf8").replaceAll("\r", "").trim();
    if (text.includes("*/")) throw new Error(`the licence of ${name} cannot stand in a comment`);
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(", ")}\n${text}`).join("\n\n");
}
