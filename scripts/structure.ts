import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import type { Figure } from "./structure/figure.ts";
import { describeExceeded, limitFor, type Limits, lowerLimits } from "./structure/limits.ts";
import { measure } from "./structure/measure.ts";

const limitsFile = join(import.meta.dirname, "structure-limits.json");

async function readLimits(): Promise<Limits> {
  const text = await readFile(limitsFile, "utf8");
  return z.record(z.string(), z.number()).parse(JSON.parse(text));
}

function listPlaces(figures: readonly Figure[], name: string): string {
  const figure = figures.find((each) => each.name === name);
  if (figure === undefined) {
    const names = figures.map((each) => each.name).join(", ");
    throw new Error(`${name} is no figure. Figures are ${names}`);
  }
  return figure.places.map((place) => `${place.file}:${place.line} ${place.name}\n`).join("");
}

function formatTable(figures: readonly Figure[], limits: Limits): string {
  const rows = figures.map((figure) => [figure.name, figure.value, limitFor(limits, figure)]);
  const lines = [["figure", "now", "limit"], ...rows].map(([name, value, limit]) =>
    [String(name).padEnd(32), String(value).padStart(7), String(limit).padStart(7)].join(" "),
  );
  return `${lines.join("\n")}\n`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { list: { type: "string" }, update: { type: "boolean", default: false } },
  });
  const figures = await measure(join(import.meta.dirname, ".."));
  if (values.list !== undefined) {
    process.stdout.write(listPlaces(figures, values.list));
    return;
  }
  if (values.update) {
    const lowered = lowerLimits(await readLimits(), figures);
    await writeFile(limitsFile, `${JSON.stringify(lowered, undefined, 2)}\n`);
  }
  const limits = await readLimits();
  process.stdout.write(formatTable(figures, limits));
  for (const sentence of describeExceeded(limits, figures)) {
    process.stderr.write(`${sentence}\n`);
    process.exitCode = 1;
  }
}

await main();
