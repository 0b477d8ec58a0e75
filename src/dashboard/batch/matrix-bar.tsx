import { Icon } from "../shared/icon.tsx";
import { type LookName, looks, type MatrixView, matrixViews } from "./look-at-job.ts";

interface MatrixBarProps {
  readonly batchId: string;
  readonly view: MatrixView;
  /** The looks of the matrix's cells. */
  readonly shown: ReadonlySet<LookName>;
}

/** Which figure the matrix shows, and what its colours and signs mean. */
export function MatrixBar({ batchId, view, shown }: MatrixBarProps) {
  return (
    <div class="filters">
      <nav class="tabs" aria-label="Figure">
        {Object.entries(matrixViews).map(([name, title]) => (
          <a
            key={name}
            href={`/batches/${batchId}?show=${name}`}
            aria-current={name === view ? "true" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <LookLegend shown={shown} />
    </div>
  );
}

function LookLegend({ shown }: Pick<MatrixBarProps, "shown">) {
  const entries = Object.entries(looks).filter(([name]) => shown.has(name as LookName));
  return (
    <ul class="look-legend" aria-label="Signs">
      {entries.map(([name, { icon, words }]) => (
        <li key={name} class={`is-${name}`}>
          <span class="look-sign">
            <Icon name={icon} />
          </span>
          {words}
        </li>
      ))}
    </ul>
  );
}
