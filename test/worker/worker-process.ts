import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import {
  type Assignment,
  type TelemetryUpdate,
  type WorkerEvent,
} from "../../src/contract/worker-protocol/messages.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { realModel } from "../support/real-models.ts";
import { standInService } from "./stand-in-service.ts";
import { inheritedEnvironment } from "../support/inherited-environment.ts";
import { until } from "../support/until.ts";

const workerPath = fileURLToPath(new URL("../../src/worker/main.ts", import.meta.url));
const quickEvaluation = { samples: 1, latencyBudgetSeconds: 0 };

export interface Setting extends Partial<Omit<Assignment, "recipe" | "model" | "limits">> {
  readonly recipe?: PartialRecipe;
  readonly sha256?: string;
  /** Folder of the blobs. */
  readonly storage?: string;
  readonly limits?: Partial<Assignment["limits"]>;
}

/** A service stand-in with one job, and a way to start its worker. */
export async function makeJob(
  t: Pick<TestContext, "after">,
  source: string,
  setting: Setting = {},
) {
  const { recipe = {}, sha256, limits, ...rest } = setting;
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "worker-")));
  // Processes that the worker has started may still write to it.
  t.after(async () => rm(folder, { recursive: true, maxRetries: 20 }));
  const [target] = builtinTargets;
  assert(target);
  const assignment: Assignment = {
    id: "job-00000000000000000000000000",
    kind: "compress",
    model: { source, name: "net", ...(sha256 && { sha256 }) },
    target,
    recipe: resolveRecipe(target.recipe, { evaluation: quickEvaluation }, recipe),
    dryRun: false,
    attempt: 1,
    part: null,
    baseline: null,
    latencyLimits: {},
    comparison: null,
    earlierCosts: [],
    ...rest,
    limits: { maxModelBytes: 1e9, allowedRoots: ["/"], allowPrivateAddresses: true, ...limits },
  };
  const { storage = path.join(folder, "store") } = setting;
  const service = await standInService(t, assignment, () => createDirectoryBlobStore(storage));
  const work = path.join(folder, "work");
  await mkdir(work);
  const start = () => {
    const child = spawn(process.execPath, [workerPath], {
      env: {
        ...inheritedEnvironment(),
        TMPDIR: work,
        MOS_SERVICE_URL: service.url,
        MOS_JOB_ID: assignment.id,
        MOS_JOB_TOKEN: "secret",
        MOS_STORAGE_DIR: storage,
        MOS_WORK_DIR: work,
      },
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    child.stdout.resume();
    t.after(() => endGroup(child));
    return child;
  };
  return { service, storage, folder, start };
}

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined && isGroupAlive(pid)) process.kill(-pid, "SIGKILL");
}

function isGroupAlive(pid: number): boolean {
  try {
    return process.kill(-pid, 0);
  } catch {
    return false;
  }
}

export async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode;
}

export async function storedNames(storage: string): Promise<string[]> {
  const entries = await readdir(storage, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

export const orientation = pathToFileURL(realModel("ocr-orientation")).href;

/** What events said in the end. */
export function summarizeEvents(events: readonly WorkerEvent[]) {
  const telemetry: TelemetryUpdate = {};
  for (const event of events)
    if (event.type === "telemetry") Object.assign(telemetry, event.telemetry);
  return {
    telemetry,
    artifacts: events.flatMap((event) => (event.type === "artifact" ? [event.artifact] : [])),
    statuses: events.flatMap((event) => (event.type === "status" ? [event.status] : [])),
  };
}

export function listArtifactHashes(events: readonly WorkerEvent[]): string[] {
  return summarizeEvents(events).artifacts.map(({ sha256 }) => sha256);
}

/** Resolves when no process of the worker's group is left. */
export async function waitForGroupExit(child: ChildProcess): Promise<void> {
  await exitCode(child);
  const { pid } = child;
  await until("the worker's group is gone", () => pid === undefined || !isGroupAlive(pid));
}
