import "../shared/plain-zod.ts";
import { type ModelGraph, modelGraph } from "../../contract/jobs/model-graph.ts";
import { parseText } from "../shared/parse-text.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | { readonly graph: ModelGraph; readonly layout: GraphLayout }
  | { readonly error: string };

function answer(content: ArrayBuffer): GraphAnswer {
  const parsed = modelGraph.safeParse(parseText(new TextDecoder().decode(content)));
  if (!parsed.success) return { error: "The graph was written by another version of the service" };
  return { graph: parsed.data, layout: layOutGraph(parsed.data.nodes) };
}

addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => postMessage(answer(data)));
