import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";

const main = path.join(import.meta.dirname, "../../src/action/main.ts");

export interface StepEnd {
  readonly code: number | null;
  /** What the step printed, in which the runner finds commands. */
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly state: Readonly<Record<string, string>>;
  /** Markdown of the job's summary. */
  readonly summary: string;
}

export interface Step {
  /** The checked out repository. */
  readonly workspace: string;
  /** What the runner sets for every step. */
  readonly environment: Readonly<Record<string, string>>;
  run(inputs: Readonly<Record<string, string>>, environment?: Readonly<Record<string, string>>): Promise<StepEnd>;
}

/** A step of a workflow in a workspace of its own; both are gone after the test. */
export async function prepareStep(t: TestContext, program: string = main): Promise<Step> {
  const folder = await mkdtemp(path.join(tmpdir(), "step-"));
  t.after(() => rm(folder, { recursive: true }));
  const [workspace, temporary] = [path.join(folder, "workspace"), path.join(folder, "temporary")];
  await mkdir(workspace);
  await mkdir(temporary);
  const { PATH = "", HOME = "" } = process.env;
  const base = { PATH, HOME, GITHUB_WORKSPACE: workspace, RUNNER_TEMP: temporary };
  const run = {
    GITHUB_ACTIONS: "true",
    GITHUB_REPOSITORY: "acme/models",
    GITHUB_RUN_ID: "1",
    GITHUB_RUN_ATTEMPT: "1",
    GITHUB_JOB: "compress",
    GITHUB_ACTION: "__self",
  };
  let runs = 0;
  const environment = { ...base, ...run };
  return {
    workspace,
    environment,
    async run(inputs, extra = {}) {
      const files = await commandFiles(path.join(folder, String(runs++)));
      const child = spawn(process.execPath, [program], {
        env: { ...environment, ...inputVariables(inputs), ...files, ...extra },
        stdio: ["ignore", "pipe", "inherit"],
      });
      let log = "";
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => (log += chunk));
      const [code] = await once(child, "close");
      return {
        code,
        log,
        outputs: keyValues(await readFile(files.GITHUB_OUTPUT, "utf8")),
        state: keyValues(await readFile(files.GITHUB_STATE, "utf8")),
        summary: await readFile(files.GITHUB_STEP_SUMMARY, "utf8"),
      };
    },
  };
}

async function commandFiles(folder: string) {
  await mkdir(folder);
  const files = {
    GITHUB_OUTPUT: path.join(folder, "output"),
    GITHUB_STATE: path.join(folder, "state"),
    GITHUB_STEP_SUMMARY: path.join(folder, "summary"),
  };
  for (const file of Object.values(files)) await writeFile(file, "");
  return files;
}

function inputVariables(inputs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(inputs).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]));
}

/** What `NAME<<MARK`, lines and `MARK` in a command file say. */
function keyValues(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^([^\n]+?)<<(\S+)\n(.*?)\n?\2$/gms)].map(([, name = "", , value = ""]) => [name, value]),
  );
}
