// Bundle the app into ../static: index.html, bundles named by their hash, and the licences of what is bundled.
// With --test, bundle the tests into build-test/ instead, and run them.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const shared = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

async function files(folder, ending) {
  const found = await readdir(join(here, folder), { recursive: true });
  return found.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

async function buildTests() {
  await rm(join(here, "build-test"), { recursive: true, force: true });
  await build({
    ...shared,
    entryPoints: await files("src", ".test.ts"),
    outdir: "build-test",
    platform: "node",
    sourcemap: "inline",
  });
  const { status } = spawnSync(process.execPath, ["--test", ...(await files("build-test", ".test.js"))], {
    cwd: here,
    stdio: "inherit",
  });
  process.exitCode = status ?? 1;
}

function packagesOf(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) names.add(match[1]);
  }
  return [...names].sort();
}

async function licences(metafile) {
  const parts = [];
  for (const name of packagesOf(metafile)) {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf-8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`the package ${name} has no licence text`);
    parts.push(`${name} ${version} (${license})\n\n${await readFile(join(folder, file), "utf-8")}`);
  }
  return `${parts.join(`\n${"-".repeat(80)}\n\n`)}\n`;
}

/** Bundle the worker of the map, and return the name of its file. */
async function buildWorker(outdir) {
  const { metafile } = await build({
    ...shared,
    entryPoints: { "map-index": "src/map/index.worker.ts" },
    outdir,
    entryNames: "[name]-[hash]",
    minify: true,
    legalComments: "none",
    metafile: true,
  });
  const [path] = Object.keys(metafile.outputs);
  return relative(outdir, join(here, path));
}

/**
 * Build the widget of notebooks: its loader, and the app as a function of its surroundings, with its styles.
 *
 * The function is the whole app: each call makes one with a state of its own, and modules, which are never collected,
 * are one for a page.
 */
async function buildWidget(outdir, worker) {
  const options = { ...shared, minify: true, legalComments: "none", write: false, conditions: ["notebook"] };
  const source = await readFile(join(outdir, worker), "utf-8");
  const { outputFiles } = await build({
    ...options,
    format: "iife",
    define: { MAP_WORKER_SOURCE: JSON.stringify(source) },
    entryPoints: ["src/notebook.tsx"],
    outdir,
  });
  const [code, styles] = [".js", ".css"].map((ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text);
  const app = `export default function(WIDGET){${code}}`;
  // Widths are those of the widget, and not of the window.
  const fitted = styles.replaceAll(/@media ?\(width ?</g, "@container (width<");
  if (fitted === styles) throw new Error("no rule of the styles is about the width");
  const hash = createHash("sha256").update(fitted).update(app).digest("hex").slice(0, 16);
  const loader = await build({
    ...options,
    define: { APP_HASH: JSON.stringify(hash) },
    entryPoints: ["src/widget/loader.ts"],
    outdir,
  });
  const folder = join(outdir, "notebook");
  await mkdir(folder);
  await writeFile(join(folder, "loader.js"), loader.outputFiles[0].text);
  await writeFile(join(folder, "app.js"), app);
  await writeFile(join(folder, "app.css"), fitted);
}

async function buildApp() {
  const target = join(here, "..", "static");
  const made = `${target}.new`;
  await rm(made, { recursive: true, force: true });
  await mkdir(made, { recursive: true });
  const worker = await buildWorker(made);
  const { metafile } = await build({
    ...shared,
    define: { MAP_WORKER: JSON.stringify(worker) },
    entryPoints: { app: "src/main.tsx" },
    outdir: made,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    splitting: true,
    minify: true,
    legalComments: "none",
    metafile: true,
  });
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => [relative(made, join(here, path)), output]);
  const [js, entry] = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
  const css = relative(made, join(here, entry.cssBundle));
  const chunks = entry.imports.filter((each) => each.kind === "import-statement");
  const preload = chunks.map(
    (each) => `<link rel="modulepreload" href="/static/${relative(made, join(here, each.path))}">`,
  );
  const page = await readFile(join(here, "index.html"), "utf-8");
  const filled = page.replace("{{css}}", css).replace("{{js}}", js).replace("{{preload}}", preload.join("\n"));
  await writeFile(join(made, "index.html"), filled);
  await copyFile(join(here, "icon.svg"), join(made, "icon.svg"));
  await buildWidget(made, worker);
  await writeFile(join(made, "licenses.txt"), await licences(metafile));
  await rm(target, { recursive: true, force: true });
  await rename(made, target);
}

await (process.argv.includes("--test") ? buildTests() : buildApp());
