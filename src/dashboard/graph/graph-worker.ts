import "../shared/plain-zod.ts";
import { modelGraph } from "../../contract/jobs/model-graph.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { type GraphLayout, layOutGraph } from "./lay-out-graph.ts";
import {
  chooseSide,
  findNode,
  type GraphPath,
  type GraphPlace,
  type GraphSide,
  listShownPart,
  type NodePlace,
  type ShownPart,
} from "./shown-part.ts";

interface GraphRequest {
  readonly content: ArrayBuffer;
  readonly side: GraphSide;
  readonly at: GraphPlace;
}

/** A graph that can be drawn, or why it cannot. */
export type GraphAnswer =
  | {
      readonly part: ShownPart;
      readonly layout: GraphLayout;
      readonly path: GraphPath;
      readonly side: GraphSide;
      /** Whether there is a graph of the result. */
      readonly hasResult: boolean;
      /** Of the node that was asked for by a name, where there is one. */
      readonly found?: NodePlace["node"] | undefined;
    }
  | { readonly error: string };

const jsonGraph = jsonValue.pipe(modelGraph);

function answer({ content, side, at }: GraphRequest): GraphAnswer {
  const parsed = jsonGraph.safeParse(new TextDecoder().decode(content));
  if (!parsed.success) {
    return {
      error: "Another version of the service wrote this graph: run the job again to see it",
    };
  }
  const model = chooseSide(parsed.data, side);
  const place = "names" in at ? findFirst(model, at.names) : undefined;
  const path = place?.path ?? ("names" in at ? [] : at);
  const part = listShownPart(model, path);
  const hasResult = parsed.data.result !== undefined;
  return { part, layout: layOutGraph(part.nodes), path, side, hasResult, found: place?.node };
}

/** The first of the names that the graph has. */
function findFirst(
  model: Parameters<typeof findNode>[0],
  names: readonly string[],
): NodePlace | undefined {
  for (const name of names) {
    const place = findNode(model, name);
    if (place !== undefined) return place;
  }
  return undefined;
}

addEventListener("message", ({ data }: MessageEvent<GraphRequest>) => postMessage(answer(data)));
