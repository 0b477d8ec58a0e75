import "../shared/plain-zod.ts";
import { modelGraph } from "../../contract/jobs/model-graph.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";
import {
  findNode,
  type GraphPath,
  listShownPart,
  type NodePlace,
  type ShownPart,
} from "./shown-part.ts";

interface GraphRequest {
  readonly content: ArrayBuffer;
  /** Which graph of the model, or a name for that which has the node. */
  readonly at: GraphPath | string;
}

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | {
      readonly part: ShownPart;
      readonly layout: GraphLayout;
      readonly path: GraphPath;
      /** Of the node that was asked for by a name, where there is one. */
      readonly found?: NodePlace["node"] | undefined;
    }
  | { readonly error: string };

const jsonGraph = jsonValue.pipe(modelGraph);

function answer({ content, at }: GraphRequest): GraphAnswer {
  const parsed = jsonGraph.safeParse(new TextDecoder().decode(content));
  if (!parsed.success) {
    return {
      error: "Another version of the service wrote this graph: run the job again to see it",
    };
  }
  const place = typeof at === "string" ? findNode(parsed.data, at) : undefined;
  const path = place?.path ?? (typeof at === "string" ? [] : at);
  const part = listShownPart(parsed.data, path);
  return { part, layout: layOutGraph(part.nodes), path, found: place?.node };
}

addEventListener("message", ({ data }: MessageEvent<GraphRequest>) => postMessage(answer(data)));
