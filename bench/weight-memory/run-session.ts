import { InferenceSession, Tensor } from "onnxruntime-node";
import {
  readPeakMemoryBytes,
  resetPeakMemory,
} from "../../src/engine/runtime/read-peak-memory-bytes.ts";

/**
 * Opens the models of the arguments one after the other, runs each on zeros, and prints as JSON the
 * memory that the last one added, bytes: at its peak, and while it waits for the next run.
 */
const paths = process.argv.slice(2);
let printed = { peakBytes: 0, settledBytes: 0 };
for (const path of paths) {
  const before = resetPeakMemory();
  const session = await InferenceSession.create(path, { intraOpNumThreads: 1 });
  const feeds = Object.fromEntries(
    session.inputMetadata.flatMap((input) => {
      if (!input.isTensor) return [];
      const shape = input.shape.map(Number);
      const elements = shape.reduce((product, size) => product * size, 1);
      const content =
        input.type === "int64" ? new BigInt64Array(elements) : new Float32Array(elements);
      return [[input.name, new Tensor(content, shape)]];
    }),
  );
  for (let run = 0; run < 3; run++) await session.run(feeds);
  const settledBytes = process.memoryUsage.rss() - before;
  printed = { peakBytes: (await readPeakMemoryBytes()) - before, settledBytes };
}
process.stdout.write(JSON.stringify(printed));
