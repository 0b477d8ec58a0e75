import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type ColourMode, listLegend } from "./draw-graph.ts";
import { GraphStage } from "./graph-stage.ts";
import "./graph.css";
import { type DrawnGraph, loadGraph } from "./load-graph.ts";
import { NodeDetails } from "./node-details.tsx";
import { NodeList } from "./node-list.tsx";
import { chooseFirst, type GraphChoice, ShownGraph } from "./shown-graph.ts";
import type { GraphSide } from "./shown-part.ts";
import type { ModelDiff, NodeChange } from "../../contract/jobs/model-diff.ts";
import { Button } from "../shared/button.tsx";
import { Choices } from "../shared/choices.tsx";
import { ErrorNotice } from "../shared/notice.tsx";

interface GraphViewProps {
  readonly address: string;
  /** Of the node or weight that is shown first. */
  readonly name: string | undefined;
  /** How the result's graph differs. */
  readonly loadChanges: () => Promise<ModelDiff | undefined>;
}

/** A graph to look at: a drawing, and the same nodes as a list. */
export function GraphView({ address, name, loadChanges }: GraphViewProps) {
  const loaded = useSignal<LoadedGraph | undefined>(undefined);
  const diff = useMemo(loadChanges, [address]);
  const error = useSignal<unknown>(undefined);
  const choice = useMemo(() => chooseFirst(name), [address, name]);
  const [side, at] = [choice.side.value, choice.at.value];
  const stop = useMemo(() => new AbortController(), [address, side, at]);
  useEffect(() => {
    [loaded.value, error.value] = [undefined, undefined];
    let isLeft = false;
    Promise.all([loadGraph(address, { side, at }, stop.signal), diff]).then(
      ([drawn, changes]) => {
        if (isLeft) return;
        if (drawn.found !== undefined) choice.selected.value = drawn.found;
        loaded.value = { drawn, changes: changes?.nodeChanges ?? [] };
      },
      (thrown: unknown) => {
        if (!isLeft) error.value = thrown;
      },
    );
    return () => {
      isLeft = true;
      stop.abort();
    };
  }, [stop]);
  if (error.value !== undefined) return <ErrorNotice error={error.value} />;
  if (loaded.value !== undefined) return <GraphParts {...loaded.value} choice={choice} />;
  return (
    <div class="graph-wait" role="status">
      Laying out the graph…
      <Button onClick={() => stop.abort(new Error("You stopped the layout"))}>Stop</Button>
    </div>
  );
}

interface LoadedGraph {
  readonly drawn: DrawnGraph;
  readonly changes: readonly NodeChange[];
}

function GraphParts({ drawn, changes, choice }: LoadedGraph & { readonly choice: GraphChoice }) {
  const shown = useMemo(() => new ShownGraph(drawn, changes, choice), [drawn]);
  return (
    <>
      <GraphTrail shown={shown} />
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

const modes: Readonly<Record<ColourMode, string>> = {
  error: "Error",
  bytes: "Bytes",
  change: "Change",
  difference: "Difference",
};

const sides: Readonly<Record<GraphSide, string>> = { original: "Original", result: "Result" };

/** Chooses which of the two graphs is drawn; the other one is shown at the same place. */
function SideChoice({ shown }: { readonly shown: ShownGraph }) {
  if (!shown.drawn.hasResult) return undefined;
  return (
    <Choices
      label="Graph"
      names={["original", "result"]}
      words={sides}
      chosen={shown.drawn.side}
      onChoose={(side) => shown.drawn.side === side || shown.turn()}
    />
  );
}

/** The graphs around a subgraph, to go back to. */
function GraphTrail({ shown }: { readonly shown: ShownGraph }) {
  const { trail } = shown.drawn.part;
  if (trail.length === 1) return undefined;
  return (
    <nav class="graph-trail" aria-label="Graphs around this one">
      {trail.map((name, depth) => (
        <span key={depth}>
          {depth === trail.length - 1 ? (
            <b>{name}</b>
          ) : (
            <Button look="quiet" onClick={() => shown.leaveTo(depth)}>
              {name}
            </Button>
          )}
        </span>
      ))}
    </nav>
  );
}

/** What the colours stand for, and how much is shown. */
function GraphBar({ shown }: { readonly shown: ShownGraph }) {
  const { part, layout } = shown.drawn;
  const count = part.nodes.filter(({ kind }) => kind === "node").length;
  const nodes = `${count.toLocaleString("en")} ${count === 1 ? "node" : "nodes"}`;
  const blocks = layout.blockCount.toLocaleString("en");
  return (
    <div class="graph-bar">
      <SideChoice shown={shown} />
      <ModeChoice shown={shown} />
      <Legend shown={shown} />
      <span class="grow" />
      <span class="dim">
        {nodes} without constants, in {blocks} blocks
      </span>
    </div>
  );
}

function ModeChoice({ shown: { mode, drawn } }: { readonly shown: ShownGraph }) {
  const offered = (Object.keys(modes) as ColourMode[]).filter(
    (each) => each !== "difference" || drawn.hasResult,
  );
  return (
    <Choices
      label="Colours"
      names={offered}
      words={modes}
      chosen={mode.value}
      onChoose={(each) => (mode.value = each)}
    />
  );
}

function Legend({ shown }: { readonly shown: ShownGraph }) {
  return (
    <ul class="legend">
      {listLegend(shown.mode.value, shown.mostBytes).map(([tone, text]) => (
        <li key={tone}>
          <i class={`swatch ${tone}`} />
          {text}
        </li>
      ))}
    </ul>
  );
}

const zoomStep = 1.4;
const canvasLabel =
  "Graph: arrow keys move it, + and - zoom, 0 shows the whole graph, Enter opens the selected " +
  "node's subgraph and Backspace leaves it. The list beside it has the same nodes.";

/** The drawing of a graph: it is moved and zoomed by pointer, wheel and keys. */
function GraphCanvas({ shown }: { readonly shown: ShownGraph }) {
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
