import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import "./graph.css";
import { Button } from "../shared/button.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { GraphBar } from "./graph-bar.tsx";
import { GraphCanvas } from "./graph-canvas.tsx";
import { type DrawnGraph, loadGraph } from "./load-graph.ts";
import { NodeDetails } from "./node-details.tsx";
import { NodeList } from "./node-list.tsx";
import { ShownGraph } from "./shown-graph.ts";

/** A graph to look at: a drawing, and the same nodes as a list. */
export function GraphView({ address }: { readonly address: string }) {
  const loaded = useSignal<DrawnGraph | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const stop = useMemo(() => new AbortController(), [address]);
  useEffect(() => {
    loadGraph(address, stop.signal).then(
      (drawn) => (loaded.value = drawn),
      (thrown: unknown) => (error.value = thrown),
    );
    return () => stop.abort();
  }, [stop]);
  if (error.value !== undefined) return <ErrorNotice error={error.value} />;
  if (loaded.value !== undefined) return <GraphParts drawn={loaded.value} />;
  return (
    <div class="graph-wait" role="status">
      Laying out the graph…
      <Button onClick={() => stop.abort(new Error("The layout was stopped"))}>Stop</Button>
    </div>
  );
}

function GraphParts({ drawn }: { readonly drawn: DrawnGraph }) {
  const shown = useMemo(() => new ShownGraph(drawn), [drawn]);
  return (
    <>
      <GraphBar shown={shown} />
      <div class="graph">
        <GraphCanvas shown={shown} />
        <div class="graph-side">
          <NodeList shown={shown} />
          <NodeDetails shown={shown} />
        </div>
      </div>
    </>
  );
}
