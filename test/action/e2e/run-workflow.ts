import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { z } from "zod";
import { programPath } from "../../support/cluster/programs.ts";
import type { WorkflowEvent } from "../support/workflow-event.ts";

const exec = promisify(execFile);
const root = path.join(import.meta.dirname, "../../..");

/** Under which name the workflows use the action, instead of which act takes the one in this work tree. */
const actionName = "modeloptimization/compress@v1";

type FileSource = { readonly copyFrom: string } | { readonly text: string };

interface WorkflowOptions {
  readonly event: WorkflowEvent;
  /** The only workflow of the repository. */
  readonly workflow: FileSource;
  readonly files: Readonly<Record<string, FileSource>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly variables?: Readonly<Record<string, string>>;
}

interface WorkflowStep {
  readonly outputs: Record<string, string>;
  /** What its two phases printed. */
  log: string;
}

export interface WorkflowEnd {
  readonly succeeded: boolean;
  /** By the steps' ids. */
  readonly steps: Readonly<Record<string, WorkflowStep>>;
  /** Markdown of the job's summary. */
  readonly summary: string;
  /** All that happened, for messages of tests. */
  readonly log: string;
}

export interface WorkflowRun {
  readonly ended: Promise<WorkflowEnd>;
  /** Resolves when what the steps printed matches. */
  untilLog(pattern: RegExp): Promise<void>;
  /** Cancels it. Act kills the step that runs at once, and then runs what is to be run in any case. */
  cancel(): void;
}

/** A line that act prints with `--json`. */
const record = z.looseObject({
  msg: z.string().default(""),
  raw_output: z.boolean().default(false),
  stepID: z.array(z.string()).default([]),
  command: z.string().optional(),
  name: z.string().default(""),
  arg: z.string().default(""),
  content: z.string().default(""),
});

/** Path of a file of `workflows`. */
export function workflowFile(name: string): string {
  return path.join(import.meta.dirname, "workflows", name);
}

/** Runs a workflow on this machine, as a runner of one's own would, in a repository of its own; both are gone after the test. */
export async function startWorkflow(
  t: TestContext,
  options: WorkflowOptions,
): Promise<WorkflowRun> {
  const folder = await mkdtemp(path.join(tmpdir(), "workflow-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const repository = path.join(folder, "repository");
  await writeRepository(repository, options);
  const action = path.join(folder, "action");
  await mkdir(action);
  await cp(path.join(root, "dist"), path.join(action, "dist"), { recursive: true });
  await copyFile(path.join(root, "action.yml"), path.join(action, "action.yml"));
  const eventFile = path.join(folder, "event.json");
  await writeFile(eventFile, JSON.stringify(options.event.payload));
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(await programPath("act"), actArguments(options, { action, eventFile }), {
    cwd: repository,
    env: {
      HOME,
      // Act takes the first `node` that it finds.
      PATH: `${path.dirname(process.execPath)}${path.delimiter}${PATH}`,
      XDG_CACHE_HOME: path.join(folder, "cache"),
      XDG_CONFIG_HOME: path.join(folder, "configuration"),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  return followAct(child);
}

/** The same, until it has ended. */
export async function runWorkflow(t: TestContext, options: WorkflowOptions): Promise<WorkflowEnd> {
  const { ended } = await startWorkflow(t, options);
  return ended;
}

async function writeRepository(
  repository: string,
  { workflow, files }: WorkflowOptions,
): Promise<void> {
  for (const [name, source] of Object.entries({
    ...files,
    ".github/workflows/compression.yml": workflow,
  })) {
    const file = path.join(repository, name);
    await mkdir(path.dirname(file), { recursive: true });
    await ("text" in source ? writeFile(file, source.text) : copyFile(source.copyFrom, file));
  }
  const git = (...words: string[]) => exec("git", ["-C", repository, ...words]);
  await git("init", "--quiet", "--initial-branch=main");
  await git("remote", "add", "origin", "https://github.com/acme/models.git");
  await git("add", "--all");
  const author = [
    "-c",
    "user.name=Octocat",
    "-c",
    "user.email=octocat@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  await git(...author, "commit", "--quiet", "--message=Add models");
}

function actArguments(
  { event, environment = {}, secrets = {}, variables = {} }: WorkflowOptions,
  { action, eventFile }: { readonly action: string; readonly eventFile: string },
): string[] {
  const {
    GITHUB_EVENT_NAME: name = "push",
    GITHUB_ACTOR: actor = "octocat",
    ...rest
  } = event.environment;
  const each = (flag: string, values: Readonly<Record<string, string>>) =>
    Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${value}`]);
  return [
    name,
    "--json",
    "--no-cache-server",
    "--platform=ubuntu-latest=-self-hosted",
    `--actor=${actor}`,
    `--eventpath=${eventFile}`,
    `--local-repository=${actionName}=${action}`,
    ...each("--env", { ...rest, ...environment }),
    ...each("--secret", secrets),
    ...each("--var", variables),
  ];
}

function followAct(child: ChildProcess): WorkflowRun {
  const steps: Record<string, WorkflowStep> = {};
  const log: string[] = [];
  const waits = new Set<() => void>();
  let summary = "";
  const note = (line: string) => {
    log.push(line);
    if (!line.startsWith("{")) return;
    const {
      stepID,
      raw_output: isPrinted,
      msg,
      command,
      name,
      arg,
      content,
    } = record.parse(JSON.parse(line));
    const step = (steps[stepID.join("/")] ??= { outputs: {}, log: "" });
    if (isPrinted) step.log += msg;
    if (command === "set-output") step.outputs[name] = arg;
    if (command === "summary") summary += content;
    waits.forEach((each) => each());
  };
  const closed = [child.stdout, child.stderr].map(async (stream) => {
    if (stream === null) return;
    for await (const line of createInterface({ input: stream })) note(line);
  });
  const ended = once(child, "close").then(async ([code]): Promise<WorkflowEnd> => {
    await Promise.all(closed);
    return { succeeded: code === 0, steps, summary, log: log.join("\n") };
  });
  return {
    ended,
    async untilLog(pattern) {
      const isThere = () => Object.values(steps).some((step) => pattern.test(step.log));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const check = () => isThere() && resolve();
      waits.add(check);
      check();
      void ended.then((end) =>
        reject(new Error(`The workflow ended before it printed ${pattern}:\n${end.log}`)),
      );
      await promise;
      waits.delete(check);
    },
    cancel: () => void child.kill("SIGINT"),
  };
}
