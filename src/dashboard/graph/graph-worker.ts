import "../shared/plain-zod.ts";
import { type ModelGraph, modelGraph } from "../../contract/jobs/model-graph.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | { readonly graph: ModelGraph; readonly layout: GraphLayout }
  | { readonly error: string };

function answer(content: ArrayBuffer): GraphAnswer {
  const parsed = modelGraph.safeParse(tryParse(new TextDecoder().decode(content)));
  if (!parsed.success) return { error: "The graph is of another version of the service" };
  return { graph: parsed.data, layout: layOutGraph(parsed.data.nodes) };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => postMessage(answer(data)));
