import { trustWorkerAddress } from "../shared/trust-worker-address.ts";
import type { GraphAnswer } from "./graph-worker.ts";
import graphWorkerAddress from "./graph-worker.ts?worker&url";
import type { GraphPath } from "./shown-part.ts";

export type DrawnGraph = Exclude<GraphAnswer, { readonly error: string }>;

/**
 * Loads a graph of a model and lays it out in a thread of its own.
 * @param at which graph, or a name for that which has the node
 */
export async function loadGraph(
  address: string,
  at: GraphPath | string,
  signal: AbortSignal,
): Promise<DrawnGraph> {
  const answer = await fetch(address, { signal });
  if (!answer.ok) throw new Error(`The graph cannot be loaded: status ${answer.status}`);
  const content = await answer.arrayBuffer();
  const worker = new Worker(trustWorkerAddress(graphWorkerAddress), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<GraphAnswer>();
  worker.addEventListener("message", ({ data }: MessageEvent<GraphAnswer>) => resolve(data));
  worker.addEventListener("error", () => reject(new Error("The graph cannot be laid out")));
  signal.addEventListener("abort", () => reject(signal.reason));
  worker.postMessage({ content, at }, [content]);
  const laidOut = await promise.finally(() => worker.terminate());
  if ("error" in laidOut) throw new Error(laidOut.error);
  return laidOut;
}
