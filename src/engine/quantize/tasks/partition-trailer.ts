import { z } from "zod";
import { readJsonTrailer } from "../../onnx/json-trailer.ts";

const errorSums = z.object({
  signal: z.number(),
  noise: z.number(),
  changed: z.number(),
  product: z.number(),
  maxAbsoluteError: z.number(),
  notFinite: z.boolean(),
});

const trailer = z.array(
  z.object({
    task: z.string().describe("Digest of the task."),
    bytes: z.int().min(0).describe("Length of its outputs."),
    weight: z.int().min(0),
    sums: errorSums,
    rejection: z.string().optional(),
  }),
);

/** Results of the tasks of a partition, in the order in which their outputs are in the file. */
export type PartitionTrailer = z.infer<typeof trailer>;

/** @throws Error if a file is no partition, or not all of one */
export async function readTrailer(file: string): Promise<PartitionTrailer> {
  const { value, start } = await readJsonTrailer(file);
  const entries = trailer.parse(value);
  const outputBytes = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (outputBytes !== start) throw new Error(`"${file}" is not a whole share`);
  return entries;
}
