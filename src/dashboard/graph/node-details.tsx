import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { ModelGraphWeight } from "../../contract/jobs/model-graph.ts";
import type { ShownGraph } from "./shown-graph.ts";

export function NodeDetails({ shown }: { readonly shown: ShownGraph }) {
  const { nodes, weights } = shown.drawn.graph;
  const node = nodes[shown.selected.value ?? -1];
  if (node === undefined) {
    return <p class="node-details dim">Select a node in the graph or in the list.</p>;
  }
  return (
    <section class="node-details" aria-label="Selected node" tabIndex={0}>
      <h3>{node.opType}</h3>
      <p class="mono cut-anywhere">{node.name}</p>
      <NodeLinks shown={shown} title="Inputs from" positions={node.inputs} />
      <NodeWeights weights={node.weights.flatMap((position) => weights[position] ?? [])} />
    </section>
  );
}

/** The largest first. */
function NodeWeights({ weights }: { readonly weights: readonly ModelGraphWeight[] }) {
  if (weights.length === 0) return <p class="dim">This node has no weights.</p>;
  const largestFirst = weights.toSorted((a, b) => b.originalBytes - a.originalBytes);
  return (
    <>
      {largestFirst.map((weight) => (
        <WeightFacts key={weight.name} weight={weight} />
      ))}
    </>
  );
}

interface NodeLinksProps {
  readonly shown: ShownGraph;
  readonly title: string;
  readonly positions: readonly number[];
}

const shownLinks = 6;

function NodeLinks({ shown, title, positions }: NodeLinksProps) {
  const { nodes } = shown.drawn.graph;
  if (positions.length === 0) return <p class="dim">Its inputs are inputs of the model.</p>;
  return (
    <p>
      {title}{" "}
      {positions.slice(0, shownLinks).map((position) => (
        <button
          key={position}
          type="button"
          class="quiet small"
          onClick={() => (shown.selected.value = position)}
        >
          {nodes[position]?.opType}
        </button>
      ))}
      {positions.length > shownLinks && `and ${positions.length - shownLinks} more`}
    </p>
  );
}

function WeightFacts({ weight }: { readonly weight: ModelGraphWeight }) {
  const { name, form, reason, originalBytes, resultBytes, sqnrDb } = weight;
  return (
    <dl class="pairs">
      <dt>Weight</dt>
      <dd class="mono cut-anywhere">{name}</dd>
      <dt>Stored as</dt>
      <dd>{form ?? "unchanged"}</dd>
      {reason !== null && <dt>Reason</dt>}
      {reason !== null && <dd>{reason}</dd>}
      <dt>Size</dt>
      <dd>
        {formatBytes(originalBytes)}
        {form !== null && ` to ${formatBytes(resultBytes)}`}
      </dd>
      {sqnrDb !== null && <dt>Error</dt>}
      {sqnrDb !== null && <dd>{sqnrDb.toFixed(1)} dB</dd>}
    </dl>
  );
}
