import { toConnectionError } from "../session/service.ts";
import { trustWorkerAddress } from "../shared/trust-worker-address.ts";
import type { GraphAnswer } from "./graph-worker.ts";
import graphWorkerAddress from "./graph-worker.ts?worker&url";
import type { GraphPlace, GraphSide } from "./shown-part.ts";

export type DrawnGraph = Exclude<GraphAnswer, { readonly error: string }>;

/** Loads a graph of a model and lays it out in a thread of its own. */
export async function loadGraph(
  address: string,
  { side, at }: { readonly side: GraphSide; readonly at: GraphPlace },
  signal: AbortSignal,
): Promise<DrawnGraph> {
  const answer = await fetch(address, { signal }).catch(toConnectionError);
  if (!answer.ok) throw new Error(`The graph cannot be loaded: status ${answer.status}`);
  const content = await answer.arrayBuffer();
  const worker = new Worker(trustWorkerAddress(graphWorkerAddress), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<GraphAnswer>();
  worker.addEventListener("message", ({ data }: MessageEvent<GraphAnswer>) => resolve(data));
  worker.addEventListener("error", () => reject(new Error("The graph cannot be laid out")));
  signal.addEventListener("abort", () => reject(signal.reason));
  worker.postMessage({ content, side, at }, [content]);
  const laidOut = await promise.finally(() => worker.terminate());
  if ("error" in laidOut) throw new Error(laidOut.error);
  return laidOut;
}
