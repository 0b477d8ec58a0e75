import assert from "node:assert/strict";
import { InferenceSession } from "onnxruntime-node";
import { promptFeeds } from "../../support/prompt-feeds.ts";

/** Logits after a prompt. */
export async function predict(file: string): Promise<Float32Array> {
  const session = await InferenceSession.create(file, { logSeverityLevel: 3 });
  const feeds = promptFeeds(session, [1, 17, 5, 40, 9, 33, 2, 60]);
  const { logits } = await session.run(feeds, ["logits"]);
  await session.release();
  assert(logits?.data instanceof Float32Array);
  return logits.data;
}

export function sqnrDb(original: Float32Array, result: Float32Array): number {
  let [signal, noise] = [0, 0];
  for (const [at, value] of original.entries()) {
    signal += value ** 2;
    noise += (value - Number(result[at])) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}
