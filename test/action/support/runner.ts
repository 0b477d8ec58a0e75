import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  type CommandFiles,
  makeCommandFiles,
  readCommandFiles,
  type CommandFileContents,
} from "./command-files.ts";
import { readStepLog, type StepLog } from "./step-log.ts";
import { type WorkflowEvent, workflowEvents } from "./workflow-event.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";

const bundle = path.join(import.meta.dirname, "../../../dist/index.js");

/** How GitHub's runner ends the step of a cancelled workflow: each signal, with the time until the next, milliseconds. */
const cancellation = [
  ["SIGINT", 7_500],
  ["SIGTERM", 2_500],
  ["SIGKILL", 0],
] as const;

export interface StepEnd extends CommandFileContents, StepLog {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it was sent on a cancellation. */
  readonly signals: readonly NodeJS.Signals[];
  /** All that it printed, with commands to the runner. */
  readonly log: string;
}

interface StepRun {
  readonly pid: number;
  readonly ended: Promise<StepEnd>;
  /** What it printed so far. */
  log(): string;
  /** Resolves when what it printed matches; rejects where it ends before that. */
  untilLog(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it as the runner does when somebody cancels the workflow. */
  cancel(): Promise<StepEnd>;
  kill(signal: NodeJS.Signals): void;
}

interface StepOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** A push to the default branch where it is left out. */
  readonly event?: WorkflowEvent;
}

/** A replay of what GitHub's runner does around a step of one job. */
export interface Runner {
  /** The checked out repository. */
  readonly workspace: string;
  start(inputs: Readonly<Record<string, string>>, surroundings?: StepOptions): Promise<StepRun>;
  /** The step's second phase, which runs after all steps, with the state that the first one left. */
  startPost(
    state: CommandFileContents["state"],
    inputs: Readonly<Record<string, string>>,
    surroundings?: StepOptions,
  ): Promise<StepRun>;
}

interface RunnerOptions {
  /** The bundle, as it is checked in, where it is left out. */
  readonly program?: string;
  /** For every step. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A job in a workspace of its own; both are gone after the test. */
export async function prepareRunner(
  t: Pick<TestContext, "after">,
  options: RunnerOptions = {},
): Promise<Runner> {
  const { program = bundle, environment: ofJob } = options;
  const folder = await mkdtemp(path.join(tmpdir(), "runner-"));
  // A step that is killed after it may still write to it.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }));
  const [workspace, temporary] = [path.join(folder, "workspace"), path.join(folder, "temporary")];
  await mkdir(workspace);
  await mkdir(temporary);
  let steps = 0;

  async function start(
    variables: Readonly<Record<string, string>>,
    surroundings: StepOptions,
  ): Promise<StepRun> {
    const { event = workflowEvents.push, environment } = surroundings;
    const files = await makeCommandFiles(path.join(folder, String(++steps)));
    const eventFile = path.join(folder, `event-${steps}.json`);
    await writeFile(eventFile, JSON.stringify(event.payload));
    const run = followProcess(program, files, {
      ...inheritedEnvironment(),
      ...jobVariables,
      ...event.environment,
      ...ofJob,
      GITHUB_EVENT_PATH: eventFile,
      GITHUB_WORKSPACE: workspace,
      RUNNER_TEMP: temporary,
      ...files,
      ...variables,
      ...environment,
    });
    t.after(() => run.kill("SIGKILL"));
    return run;
  }

  return {
    workspace,
    start: (inputs, surroundings = {}) => start(inputVariables(inputs), surroundings),
    startPost(state, inputs, surroundings = {}) {
      const ofState = Object.entries(state).map(([name, value]) => [`STATE_${name}`, value]);
      return start({ ...inputVariables(inputs), ...Object.fromEntries(ofState) }, surroundings);
    },
  };
}

const jobVariables = {
  CI: "true",
  GITHUB_ACTIONS: "true",
  GITHUB_ACTION: "__self",
  GITHUB_API_URL: "https://api.github.com",
  GITHUB_JOB: "compress",
  GITHUB_REPOSITORY: "acme/models",
  GITHUB_REPOSITORY_ID: "1296269",
  GITHUB_REPOSITORY_OWNER: "acme",
  GITHUB_RUN_ATTEMPT: "1",
  GITHUB_RUN_ID: "30433642",
  GITHUB_RUN_NUMBER: "12",
  GITHUB_SERVER_URL: "https://github.com",
  GITHUB_WORKFLOW: "Compression",
  GITHUB_WORKFLOW_REF: "acme/models/.github/workflows/compression.yml@refs/heads/main",
  RUNNER_OS: "Linux",
};

function inputVariables(inputs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, value]) => [
      `INPUT_${name.replaceAll(" ", "_").toUpperCase()}`,
      value,
    ]),
  );
}

function followProcess(
  program: string,
  files: CommandFiles,
  environment: Record<string, string>,
): StepRun {
  const child = spawn(process.execPath, [program], {
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const signals: NodeJS.Signals[] = [];
  let log = "";
  const wake: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      log += chunk;
      wake.splice(0).forEach((each) => each());
    });
  }
  const ended = once(child, "close").then(async ([code, signal]): Promise<StepEnd> => {
    const contents = await readCommandFiles(files);
    return { code, signal, signals, log, ...contents, ...readStepLog(log) };
  });
  return {
    pid: child.pid ?? 0,
    ended,
    log: () => log,
    async untilLog(pattern) {
      for (;;) {
        const match = pattern.exec(log);
        if (match !== null) return match;
        const { promise, resolve } = Promise.withResolvers<undefined>();
        wake.push(() => resolve(undefined));
        const end = await Promise.race([promise, ended]);
        if (end !== undefined && !pattern.test(log))
          throw new Error(`The step ended before it printed ${pattern}:\n${log}`);
      }
    },
    async cancel() {
      for (const [signal, ms] of cancellation) {
        signals.push(signal);
        child.kill(signal);
        const timer = new AbortController();
        const waited = delay(ms, true, { signal: timer.signal }).catch(() => true);
        const isLeft = await Promise.race([ended.then(() => false), waited]);
        timer.abort();
        if (!isLeft) break;
      }
      return ended;
    },
    kill: (signal) => void child.kill(signal),
  };
}
