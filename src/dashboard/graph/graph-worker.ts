import "../shared/plain-zod.ts";
import { modelGraph } from "../../contract/jobs/model-graph.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";
import { type GraphPath, listShownPart, type ShownPart } from "./shown-part.ts";

interface GraphRequest {
  readonly content: ArrayBuffer;
  readonly path: GraphPath;
}

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | { readonly part: ShownPart; readonly layout: GraphLayout }
  | { readonly error: string };

const jsonGraph = jsonValue.pipe(modelGraph);

function answer({ content, path }: GraphRequest): GraphAnswer {
  const parsed = jsonGraph.safeParse(new TextDecoder().decode(content));
  if (!parsed.success) {
    return {
      error: "Another version of the service wrote this graph: run the job again to see it",
    };
  }
  const part = listShownPart(parsed.data, path);
  return { part, layout: layOutGraph(part.nodes) };
}

addEventListener("message", ({ data }: MessageEvent<GraphRequest>) => postMessage(answer(data)));
