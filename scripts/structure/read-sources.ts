import { glob, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { parseSource } from "./parse-source.ts";
import type { Source } from "./source.ts";

const folders = ["src", "operator", "bench", "scripts"];
const generated = /\/onnx_pb\./;

/** Parses the files that are measured, and those of `bench` and `scripts`, which import them. */
export async function readSources(root: string): Promise<readonly Source[]> {
  const patterns = folders.map((folder) => `${folder}/**/*.{ts,tsx}`);
  const found = await Array.fromAsync(glob(patterns, { cwd: root }));
  const files = found.map((file) => file.replaceAll(sep, "/"));
  const written = files.filter((file) => !generated.test(file)).toSorted();
  const texts = await Promise.all(written.map((file) => readFile(join(root, file), "utf8")));
  return written.map((file, index) => parseSource(file, texts[index] ?? ""));
}
