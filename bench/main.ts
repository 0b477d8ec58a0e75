import { existsSync } from "node:fs";
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildDashboard } from "../scripts/build-dashboard.ts";
import { prepareRequirement } from "../test/support/cluster/prepare-requirement.ts";
import { requirements } from "../test/support/cluster/requirements.ts";
import { preparePython } from "../test/support/prepare-python.ts";

const { clusterMissing, chromiumMissing, postgresMissing, s3Missing } = requirements;

/** How to prepare what a bench needs, by the module of the tests' support that it imports. */
const preparations: Readonly<Record<string, () => Promise<void>>> = {
  "support/python.ts": preparePython,
  "support/real-models.ts": preparePython,
  "support/cluster/": () => prepareRequirement(clusterMissing),
  "support/replicated-service.ts": () => prepareRequirement(postgresMissing),
  "support/postgres-server.ts": () => prepareRequirement(postgresMissing),
  "storage/s3-server.ts": () => prepareRequirement(s3Missing),
  "dashboard/open-dashboard.ts": async () => {
    await prepareRequirement(chromiumMissing);
    await buildDashboard();
  },
};

/** Builds and installs what is missing, so that a bench runs on a fresh clone too. */
async function prepareBench(name: string): Promise<void> {
  const cwd = import.meta.dirname;
  const files = await Array.fromAsync(glob([`${name}.ts`, `${name}/*.ts`], { cwd }));
  const texts = await Promise.all(files.map(async (file) => readFile(join(cwd, file), "utf8")));
  for (const [module, prepare] of Object.entries(preparations)) {
    if (texts.some((text) => text.includes(module))) await prepare();
  }
}

const [name = ""] = process.argv.slice(2);
if (!/^[a-z0-9][a-z0-9-]*$/.test(name) || !existsSync(join(import.meta.dirname, `${name}.ts`))) {
  process.stderr.write("Usage: npm run bench -- NAME, with NAME one of the files in bench/\n");
  process.exit(2);
}
await prepareBench(name);
await import(`./${name}.ts`);
