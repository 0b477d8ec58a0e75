import { graphlib, layout } from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";
import type { NodeChange } from "../../contract/jobs/model-diff.ts";
import { truncate } from "../../contract/text/truncate.ts";

/** More would be no drawing that somebody reads. */
const mostChanges = 24;
const box = { width: 190, height: 42 } as const;
const margin = 8;

/** The first nodes that changed, between those around them. */
export function ChangeDrawing({ changes }: { readonly changes: readonly NodeChange[] }) {
  const drawing = useMemo(() => layOutChanges(changes.slice(0, mostChanges)), [changes]);
  if (changes.length === 0) return undefined;
  const { nodes, lines, width, height } = drawing;
  return (
    <section class="card c12">
      <header>
        <h2>Where it changed</h2>
        <span class="dim">
          {changes.length > mostChanges
            ? `the first ${mostChanges} changed nodes`
            : "changed nodes"}{" "}
          with what is around them
        </span>
      </header>
      <div class="change-drawing" tabIndex={0} role="region" aria-label="Drawing of changed nodes">
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label="Changed nodes and their neighbours; the table of nodes has the same"
        >
          {lines.map((points) => (
            <polyline key={points} class="change-edge" points={points} />
          ))}
          {nodes.map((node) => (
            <DrawnBox key={node.name} {...node} />
          ))}
        </svg>
      </div>
    </section>
  );
}

interface DrawnNode {
  readonly name: string;
  /** Undefined of a node that did not change. */
  readonly change: NodeChange | undefined;
  readonly x: number;
  readonly y: number;
}

/** About as many letters as a box is wide. */
const mostLetters = 22;

function DrawnBox({ name, change, x, y }: DrawnNode) {
  return (
    <g class={`change-box ${change?.how ?? "kept"}`} transform={`translate(${x} ${y})`}>
      <title>{name}</title>
      <rect width={box.width} height={box.height} rx={6} />
      <text x={10} y={change ? 17 : 26} class="mono">
        {truncate(shorten(name), mostLetters + 1)}
      </text>
      {change && (
        <text x={10} y={33} class="change-op">
          {change.how} {change.op}
        </text>
      )}
    </g>
  );
}

/** The end of a name says more than its start. */
function shorten(name: string): string {
  return name.length > mostLetters ? `…${name.slice(1 - mostLetters)}` : name;
}

function layOutChanges(changes: readonly NodeChange[]) {
  const edges = changes.flatMap(({ name, from, to }) => [
    ...from.map((other) => [other, name] as const),
    ...to.map((other) => [name, other] as const),
  ]);
  const names = [...new Set([...changes.map(({ name }) => name), ...edges.flat()])];
  // Names may be any text, also that of a property which every object has.
  const ids = new Map(names.map((name, i) => [name, String(i)]));
  const idOf = (name: string) => ids.get(name) ?? "";
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", ranksep: 36, nodesep: 10, marginx: margin, marginy: margin });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(idOf(name), { ...box });
  for (const [from, to] of edges) graph.setEdge(idOf(from), idOf(to));
  layout(graph);
  const byName = new Map(changes.map((change) => [change.name, change]));
  const nodes = names.map((name): DrawnNode => {
    const { x, y } = graph.node(idOf(name));
    return { name, change: byName.get(name), x: x - box.width / 2, y: y - box.height / 2 };
  });
  const lines = edges.map(([from, to]) => {
    const { points = [] } = graph.edge(idOf(from), idOf(to));
    return points.map(({ x, y }: { x: number; y: number }) => `${x},${y}`).join(" ");
  });
  const right = Math.max(0, ...nodes.map(({ x }) => x + box.width));
  const bottom = Math.max(0, ...nodes.map(({ y }) => y + box.height));
  return { nodes, lines: [...new Set(lines)], width: right + margin, height: bottom + margin };
}
