import assert from "node:assert/strict";
import test from "node:test";
import {
  describeDevice,
  parseInstructionSets,
} from "../../../src/engine/evaluate/describe-device.ts";

test("parseInstructionSets() reads the flags of x86 that matter to inference", () => {
  const text =
    "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse4_2 avx avx2 avx512_vnni fma\n";
  assert.deepEqual(parseInstructionSets(text), ["sse4_2", "avx", "avx2", "fma", "avx512_vnni"]);
});

test("parseInstructionSets() reads the features of Arm", () => {
  const text = "processor\t: 0\nFeatures\t: fp asimd evtstrm asimddp sve i8mm\n";
  assert.deepEqual(parseInstructionSets(text), ["asimd", "asimddp", "i8mm", "sve"]);
});

test("parseInstructionSets() gives nothing where the text has no flags", () => {
  assert.deepEqual(parseInstructionSets("processor : 0\n"), []);
});

test("describeDevice() reports processors and threads", async () => {
  const { cores = 0, threads, executionProvider } = await describeDevice("cpu", 3);
  assert.ok(cores >= 1);
  assert.deepEqual([threads, executionProvider], [3, "cpu"]);
});
