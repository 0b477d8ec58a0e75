import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** Largest resident memory of a process that compresses models of at most 2 MB, bytes. */
const maxResidentBytes = 1_073_741_824;
/** Time without progress after which a process is taken to hang. Slow inputs find themselves by processor time. */
const maxStandstillMs = 30_000;
const pollMs = 250;
/** Inputs of one process, so that no state gathers. */
const maxBatchInputs = 5000;
/** Findings after which going on shows nothing new. */
const maxFindings = 200;

const entry = fileURLToPath(new URL("fuzz-process.ts", import.meta.url));

export interface FuzzOptions {
  readonly seed: number;
  readonly inputs: number;
  readonly seconds: number;
  readonly processes: number;
}

interface Finding {
  readonly index: number;
  readonly failure: string;
}

export interface FuzzResult {
  readonly inputs: number;
  /** Inputs by what became of them: success, or the code of the error. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

const message = z.union([
  z.object({ index: z.int(), failure: z.string() }),
  z.object({ outcomes: z.record(z.string(), z.int()) }),
]);

/** Compresses mutated models in processes of their own until the inputs or the seconds are used up. */
export async function runFuzz({
  seed,
  inputs,
  seconds,
  processes,
}: FuzzOptions): Promise<FuzzResult> {
  const deadline = Date.now() + seconds * 1000;
  const root = await mkdtemp(join(tmpdir(), "fuzz-"));
  const findings: Finding[] = [];
  const outcomes: Record<string, number> = {};
  const batchInputs = Math.min(maxBatchInputs, Math.ceil(inputs / processes));
  let next = 0;
  let tried = 0;
  const work = async (folder: string): Promise<void> => {
    await mkdir(folder);
    while (next < inputs && Date.now() < deadline && findings.length < maxFindings) {
      const first = next;
      const end = Math.min(inputs, first + batchInputs);
      next = end;
      for (let at = first; at < end && Date.now() < deadline;) {
        const batch = await runBatch({ seed, first: at, end, folder, deadline });
        findings.push(...batch.findings);
        for (const [outcome, count] of Object.entries(batch.outcomes)) {
          outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
        }
        tried += batch.reached - at;
        at = batch.reached;
      }
    }
  };
  await Promise.all(
    Array.from({ length: processes }, (_, index) => work(join(root, String(index)))),
  );
  await rm(root, { recursive: true });
  return { inputs: tried, outcomes, findings };
}

interface Batch {
  readonly seed: number;
  readonly first: number;
  readonly end: number;
  readonly folder: string;
  readonly deadline: number;
}

interface BatchResult extends Omit<FuzzResult, "inputs"> {
  /** Index of the first input that was not tried. */
  readonly reached: number;
}

async function runBatch({ seed, first, end, folder, deadline }: Batch): Promise<BatchResult> {
  const findings: Finding[] = [];
  let outcomes: Record<string, number> | undefined;
  const child = fork(entry, [String(seed), String(first), String(end), folder], {
    execArgv: ["--max-old-space-size=512", "--no-warnings"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let errors = "";
  child.stderr
    ?.setEncoding("utf8")
    .on("data", (text: string) => (errors = (errors + text).slice(-2000)));
  child.on("message", (sent) => {
    const parsed = message.parse(sent);
    if ("outcomes" in parsed) outcomes = parsed.outcomes;
    else findings.push(parsed);
  });
  const watch = watchProcess(child, { folder, deadline });
  const [code, signal] = await once(child, "close");
  const stopped = watch.stop();
  if (outcomes !== undefined) return { findings, outcomes, reached: end };
  const at = (await readPosition(folder)) ?? first;
  if (stopped === "deadline") return { findings, outcomes: {}, reached: at };
  const failure = stopped ?? `The process ended with ${signal ?? code}: ${errors}`;
  return { findings: [...findings, { index: at, failure }], outcomes: {}, reached: at + 1 };
}

interface Watch {
  /** @returns why the process was stopped */
  readonly stop: () => string | undefined;
}

/** Stops a process that stands still, takes too much memory, or is not done by the deadline. */
function watchProcess(
  child: ChildProcess,
  { folder, deadline }: { folder: string; deadline: number },
): Watch {
  let reason: string | undefined;
  let position: number | undefined;
  let since = Date.now();
  const poll = async (): Promise<void> => {
    const now = await readPosition(folder);
    if (now !== position) since = Date.now();
    position = now;
    const resident = await residentBytes(child.pid);
    if (resident > maxResidentBytes) reason = `The process has ${resident} bytes of memory`;
    else if (Date.now() - since > maxStandstillMs) reason = `No progress in ${maxStandstillMs} ms`;
    else if (Date.now() > deadline) reason = "deadline";
    if (reason !== undefined) child.kill("SIGKILL");
  };
  const timer = setInterval(() => void poll(), pollMs);
  return {
    stop: () => {
      clearInterval(timer);
      return reason;
    },
  };
}

async function readPosition(folder: string): Promise<number | undefined> {
  const text = await readFile(join(folder, "position"), "utf8").catch(() => "");
  return text === "" ? undefined : Number(text);
}

/** Resident memory of a process, where the system reports it. */
async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
