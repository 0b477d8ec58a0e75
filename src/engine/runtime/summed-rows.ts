import type { RowSums, SummedSample } from "./model-session.ts";
import { type Sample, tensorNumbers } from "./tensor-data.ts";

/** The input that says which tokens are padding, in exports of language models and embeddings. */
export const maskName = "attention_mask";

/** Which positions of a sample are no padding; undefined where it does not say so. */
export function findMask(sample: Sample): Uint8Array | undefined {
  const mask = sample.find(({ name }) => name === maskName);
  return mask && Uint8Array.from(tensorNumbers(mask), (each) => Number(each !== 0));
}

/** What is summed up of a run on a sample. */
export function sumSample({ rows }: RowSums, sample: Sample): SummedSample {
  const summed = [...new Set(rows.flatMap(({ values }) => values))];
  return { summed, mask: findMask(sample) };
}

/** What is summed up of some outputs; undefined where nothing is. */
export function summedAmong(outputs: readonly string[], sums: RowSums): RowSums | undefined {
  const rows = sums.rows
    .map((each) => ({ ...each, values: each.values.filter((value) => outputs.includes(value)) }))
    .filter(({ values }) => values.length > 0);
  return rows.length === 0 ? undefined : { ...sums, rows };
}
