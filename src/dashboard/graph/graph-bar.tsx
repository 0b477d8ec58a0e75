import { type ColourMode, listLegend } from "./graph-colours.ts";
import type { ShownGraph } from "./shown-graph.ts";

const modes: Readonly<Record<ColourMode, string>> = {
  error: "Error",
  bytes: "Bytes",
  change: "What was done",
};

/** What the colours stand for, and how much is shown. */
export function GraphBar({ shown }: { readonly shown: ShownGraph }) {
  const { graph, layout } = shown.drawn;
  const nodes = graph.nodes.length.toLocaleString("en");
  const blocks = layout.blockCount.toLocaleString("en");
  return (
    <div class="graph-bar">
      <ModeChoice shown={shown} />
      <Legend shown={shown} />
      <span class="grow" />
      <span class="dim">
        All {nodes} nodes but constants, in {blocks} blocks
      </span>
    </div>
  );
}

function ModeChoice({ shown: { mode } }: { readonly shown: ShownGraph }) {
  return (
    <div class="choices" role="group" aria-label="Colours">
      {(Object.keys(modes) as ColourMode[]).map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={mode.value === each}
          onClick={() => (mode.value = each)}
        >
          {modes[each]}
        </button>
      ))}
    </div>
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
