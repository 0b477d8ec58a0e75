import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { GraphStage } from "./graph-stage.ts";
import type { ShownGraph } from "./shown-graph.ts";

const zoomStep = 1.4;
const canvasLabel =
  "Drawing of the graph: arrow keys move it, + and - zoom, 0 shows all of it. The list beside " +
  "it has the same nodes.";

/** The drawing of a graph: it is moved and zoomed by pointer, wheel and keys. */
export function GraphCanvas({ shown }: { readonly shown: ShownGraph }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<HTMLCanvasElement>(null);
  const stage = useSignal<GraphStage | undefined>(undefined);
  useEffect(() => {
    if (canvas.current === null || map.current === null) return undefined;
    const opened = new GraphStage(shown, { canvas: canvas.current, map: map.current });
    stage.value = opened;
    return () => opened.close();
  }, [shown]);
  return (
    <div class="graph-stage">
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={canvasLabel} />
      <canvas ref={map} class="graph-map" aria-hidden="true" />
      <ZoomButtons stage={stage.value} />
    </div>
  );
}

function ZoomButtons({ stage }: { readonly stage: GraphStage | undefined }) {
  return (
    <div class="graph-zoom">
      <Button label="Zoom in" onClick={() => stage?.zoom(zoomStep)}>
        +
      </Button>
      <Button label="Zoom out" onClick={() => stage?.zoom(1 / zoomStep)}>
        −
      </Button>
      <Button title="Show the whole graph" onClick={() => stage?.showAll()}>
        All
      </Button>
    </div>
  );
}
