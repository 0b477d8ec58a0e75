import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { glob, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { run, type EventData } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { announcePreparation } from "./announce-preparation.ts";
import { arrangeTestFiles } from "./arrange-test-files.ts";
import { buildDashboard } from "./build-dashboard.ts";
import { prepareRequirement } from "../test/support/cluster/prepare-requirement.ts";
import { cacheFolder } from "../test/support/cluster/programs.ts";
import { requirements } from "../test/support/cluster/requirements.ts";
import { startSharedCluster } from "../test/support/cluster/shared-cluster.ts";
import { preparePython } from "../test/support/prepare-python.ts";

const named = process.argv.slice(2);
const runsAll = named.length === 0;
/** Beside those that mostly wait: more than a machine of two cores has, since all wait at times. */
const filesAtOnce = 3;
const slowestFiles = 15;
const failureLines = 15;
/** Longer than any test is silent. */
const silenceMs = 10 * 60_000;
const warmCompileCache = fileURLToPath(
  new URL("../src/worker/warm-compile-cache.ts", import.meta.url),
);

/** Runs the tests named on the command line, or all of them, and closes with their count. */
async function runTests(patterns: readonly string[]): Promise<void> {
  const files = (await Array.fromAsync(glob([...patterns]))).toSorted();
  await prepareRequirements(files);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const secondsByFile = new Map<string, number>();
  const failures: string[] = [];
  process.on("exit", () => {
    if (runsAll) process.stdout.write(describeSlowest(secondsByFile));
    // Last, since what keeps only the end of a long log would lose what each reporter prints.
    for (const failure of failures) process.stdout.write(`\n${failure}\n`);
    process.stdout.write(
      `\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`,
    );
  });
  const byThemselves = { waiting: [], shared: new Map<string, readonly string[]>(), others: files };
  const { waiting, shared, others } = runsAll ? arrangeTestFiles(files) : byThemselves;
  const together = await Promise.all([...shared].map(writeSharedFile));
  const streams = [run({ files: [...together, ...others], concurrency: filesAtOnce })];
  if (waiting.length > 0) streams.push(run({ files: [...waiting], concurrency: 1 }));
  const running = new Set<string>();
  const watchdog = setTimeout(() => {
    const names = [...running].map((file) => relative("", file)).join(", ");
    process.stderr.write(`No test began or ended for ${silenceMs / 60_000} minutes in ${names}\n`);
    counts.failed += running.size;
    process.exit(1);
  }, silenceMs);
  await Promise.all(
    streams.map(async (stream) => {
      stream.on("data", () => watchdog.refresh());
      stream.on("test:pass", ({ skip, details }) => {
        if (details.type === "suite") return;
        counts[skip === undefined ? "passed" : "skipped"]++;
      });
      stream.on("test:fail", (event) => {
        if (event.details.type !== "suite") counts.failed++;
        if (!hasFailedSubtests(event)) failures.push(describeFailure(event));
      });
      // A file is a test of its own, with its path as the name.
      stream.on("test:dequeue", ({ file, name }) => {
        if (file === resolve(name)) running.add(file);
      });
      stream.on("test:complete", ({ file, name, details }) => {
        if (file !== resolve(name)) return;
        running.delete(file);
        secondsByFile.set(file, details.duration_ms / 1000);
      });
      // Each has its own: a reporter takes one file's tests after the other's.
      stream.compose(spec).pipe(process.stdout);
      await once(stream, "end");
    }),
  );
  clearTimeout(watchdog);
  const nothingRan = counts.passed + counts.failed === 0;
  process.exitCode = counts.failed > 0 || nothingRan ? 1 : 0;
}

/** Writes a file that has the tests of several, for one process. @returns its path */
async function writeSharedFile([name, files]: readonly [
  string,
  readonly string[],
]): Promise<string> {
  const path = join("build", "tests", `${name}.mjs`);
  await mkdir(dirname(path), { recursive: true });
  const lines = files.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};\n`);
  await writeFile(path, lines.join(""));
  return path;
}

/** Whether it failed for its subtests, which are reported themselves. */
function hasFailedSubtests({ details }: EventData.TestFail): boolean {
  return "failureType" in details.error && details.error.failureType === "subtestsFailed";
}

/** A failed test's name and place, and the beginning of its error. */
function describeFailure({ name, file = "", line = 0, details }: EventData.TestFail): string {
  const error = inspect(details.error.cause).split("\n").slice(0, failureLines);
  return [`Failed: ${name} (${relative("", file)}:${line})`, ...error].join("\n  ");
}

/** The files whose tests took longest, a line each. */
function describeSlowest(secondsByFile: ReadonlyMap<string, number>): string {
  const slowest = [...secondsByFile].toSorted(([, one], [, other]) => other - one);
  const lines = slowest
    .slice(0, slowestFiles)
    .map(([file, seconds]) => `${seconds.toFixed(0).padStart(5)} s  ${relative("", file)}\n`);
  return `\nSlowest files:\n${lines.join("")}`;
}

async function prepareRequirements(files: readonly string[]): Promise<void> {
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  const isNamed = (word: string) => texts.some((text) => text.includes(word));
  const needed = Object.entries(requirements)
    .filter(([word]) => isNamed(word))
    .map(([, requirement]) => requirement);
  await announcePreparation(needed, runsAll);
  await prepare("Python", preparePython);
  for (const requirement of needed) {
    await prepare(requirement.title, () => prepareRequirement(requirement));
  }
  await Promise.all([
    // Files that find no page would build it at the same time, each into the folder of all.
    isNamed("open-dashboard.ts") && prepare("The dashboard", buildDashboard),
    isNamed("shared-cluster.ts") && prepare("A shared cluster", startSharedCluster),
  ]);
}

/** In CI a part that cannot be prepared is an error; elsewhere the tests that need it say so and skip. */
async function prepare(title: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (process.env["CI"] === "true") throw error;
    process.stderr.write(`${title} is not prepared, its tests will be skipped: ${String(error)}\n`);
  }
}

// Node reads modules that it has compiled before in half the time, and starts a thousand processes here.
process.env["NODE_COMPILE_CACHE"] ??= join(cacheFolder, "compiled-modules");
execFileSync(process.execPath, [warmCompileCache], { stdio: "inherit" });
// Programs in Go, such as control planes, collect garbage a quarter as often.
process.env["GOGC"] ??= "400";
await runTests(runsAll ? ["test/**/*.test.ts"] : named);
