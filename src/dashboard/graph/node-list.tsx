import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { ShownGraph } from "./shown-graph.ts";

/** As the style sheet's rows. */
const rowPx = 32;
const viewRows = 10;
const margin = 8;

interface NodeListProps {
  readonly shown: ShownGraph;
}

/** Every node of the graph, to be searched: the way without a pointer. */
export function NodeList({ shown }: NodeListProps) {
  const wanted = useSignal("");
  const top = useSignal(0);
  const view = useRef<HTMLDivElement>(null);
  const found = useComputed(() => shown.find(wanted.value));
  useEffect(() => view.current?.scrollTo({ top: 0 }), [found.value]);
  const positions = found.value;
  const start = Math.max(0, Math.floor(top.value / rowPx) - margin);
  const rows = positions.slice(start, start + viewRows + 2 * margin);
  return (
    <section class="node-list" aria-label="Nodes">
      <NodeSearch {...{ shown, wanted, positions }} />
      <div
        ref={view}
        class="node-rows"
        tabIndex={0}
        role="group"
        aria-label="Matching nodes"
        onScroll={({ currentTarget }) => (top.value = currentTarget.scrollTop)}
      >
        <div style={{ height: `${positions.length * rowPx}px` }}>
          {rows.map((position, index) => (
            <NodeRow key={position} {...{ shown, position }} top={(start + index) * rowPx} />
          ))}
        </div>
      </div>
    </section>
  );
}

interface NodeSearchProps extends NodeListProps {
  readonly wanted: Signal<string>;
  readonly positions: readonly number[];
}

/** Enter goes from one match to the next, with the shift key to the one before. */
function NodeSearch({ shown: { selected }, wanted, positions }: NodeSearchProps) {
  const step = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || positions.length === 0) return;
    const at = positions.indexOf(selected.value ?? -1);
    const next = event.shiftKey ? Math.max(at, 0) - 1 : at + 1;
    selected.value = positions.at(next % positions.length);
  };
  return (
    <div class="node-search">
      <input
        type="search"
        aria-label="Find nodes"
        placeholder="Name or operator"
        onKeyDown={step}
        onInput={({ currentTarget }) => (wanted.value = currentTarget.value)}
      />
      <span class="dim" role="status">
        {positions.length.toLocaleString("en")}
      </span>
    </div>
  );
}

interface NodeRowProps extends NodeListProps {
  readonly position: number;
  readonly top: number;
}

function NodeRow({ shown, position, top }: NodeRowProps) {
  const { name, opType } = shown.drawn.part.nodes[position] ?? { name: "", opType: "" };
  return (
    <button
      type="button"
      class="node-row"
      style={{ top: `${top}px` }}
      aria-pressed={shown.selected.value === position}
      onClick={() => (shown.selected.value = position)}
    >
      <i class={`swatch ${shown.tones.value[position] ?? "none"}`} />
      <b>{opType}</b>
      <span class="mono dim">{name}</span>
      <span class="num">{describeFigure(shown, position)}</span>
    </button>
  );
}

function describeFigure({ facts, mode }: ShownGraph, position: number): string {
  const { bytes, sqnrDb, hasWeights } = facts[position] ?? { bytes: 0, hasWeights: false };
  if (!hasWeights) return "";
  return mode.value === "error" && sqnrDb !== undefined
    ? `${sqnrDb.toFixed(1)} dB`
    : formatBytes(bytes);
}
