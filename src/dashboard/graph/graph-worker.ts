import "../shared/plain-zod.ts";
import { type ModelGraph, modelGraph } from "../../contract/jobs/model-graph.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | { readonly graph: ModelGraph; readonly layout: GraphLayout }
  | { readonly error: string };

const jsonGraph = jsonValue.pipe(modelGraph);

function answer(content: ArrayBuffer): GraphAnswer {
  const parsed = jsonGraph.safeParse(new TextDecoder().decode(content));
  if (!parsed.success) return { error: "The graph was written by another version of the service" };
  return { graph: parsed.data, layout: layOutGraph(parsed.data.nodes) };
}

addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => postMessage(answer(data)));
