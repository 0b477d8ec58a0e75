import { availableParallelism } from "node:os";
import { runFuzz } from "../test/engine/fuzz/run-fuzz.ts";
import { limitRow, reportBench } from "./result.ts";

const [, , , inputs = "1000000", minutes = "20", seed = String(Date.now() % 1_000_000)] =
  process.argv;
console.log(`Seed ${seed}: at most ${inputs} inputs in ${minutes} minutes`);
const { findings, outcomes, ...tried } = await runFuzz({
  seed: Number(seed),
  inputs: Number(inputs),
  seconds: Number(minutes) * 60,
  processes: availableParallelism(),
});
console.table(outcomes);
for (const { index, failure } of findings) console.log(`Input ${index}: ${failure}`);
await reportBench("fuzz", [
  limitRow(
    `crashes, hangs and runaway memory in ${tried.inputs} mutated models`,
    "inputs",
    findings.length,
    0,
  ),
]);
if (findings.length > 0) process.exitCode = 1;
