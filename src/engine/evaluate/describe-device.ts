import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { availableParallelism, cpus } from "node:os";
import path from "node:path";
import { z } from "zod";
import { instructionSets } from "../../contract/jobs/latency.ts";
import type { Telemetry } from "../../contract/jobs/telemetry.ts";

type Device = NonNullable<Telemetry["device"]>;

const nvidiaDevices = "/proc/driver/nvidia/gpus";

/** Describes the device that the evaluation runs on. */
export async function describeDevice(
  executionProvider: "cpu" | "cuda",
  threads: number,
): Promise<Device> {
  const name = executionProvider === "cuda" ? await readGpuName() : cpus()[0]?.model.trim();
  return {
    executionProvider,
    name: name ?? "unknown",
    cores: availableParallelism(),
    instructionSets: await readInstructionSets(),
    threads,
    runtime: await readRuntimeVersion(),
  };
}

/** Of the processors, which run what a GPU does not; empty where they are not known. */
export async function readInstructionSets(): Promise<string[]> {
  if (process.platform !== "linux") return [];
  return parseInstructionSets(await readFile("/proc/cpuinfo", "utf8"));
}

async function readRuntimeVersion(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve("onnxruntime-node");
  const manifest = await readFile(path.join(path.dirname(entry), "..", "package.json"), "utf8");
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(manifest));
  return `onnxruntime-node ${version}`;
}

/** The first GPU as its driver names it on Linux, the only system with this provider, if any. */
async function readGpuName(): Promise<string | undefined> {
  const devices = existsSync(nvidiaDevices) ? await readdir(nvidiaDevices) : [];
  const [device] = devices;
  if (device === undefined) return undefined;
  const information = await readFile(path.join(nvidiaDevices, device, "information"), "utf8");
  return /^Model:\s*(.+)$/m.exec(information)?.[1];
}

/** Instruction sets of the first processor in the text of `/proc/cpuinfo` that matter. */
export function parseInstructionSets(cpuinfo: string): string[] {
  const [, line = ""] = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo) ?? [];
  const flags = new Set(line.trim().split(/\s+/));
  return instructionSets.filter((flag) => flags.has(flag));
}
