import type { Job } from "../../contract/jobs/job.ts";
import { Icon } from "../shared/icon.tsx";

/** What a job warns of. */
export function WarningList({ warnings }: Pick<Job["telemetry"], "warnings">) {
  if (warnings.length === 0) return undefined;
  return (
    <section class="card">
      <header>
        <h2>Warnings</h2>
        <span class="dim">{warnings.length}</span>
      </header>
      <ul class="list">
        {warnings.map((warning) => (
          <WarningLine key={warning.code} {...warning} />
        ))}
      </ul>
    </section>
  );
}

function WarningLine({ code, message }: Job["telemetry"]["warnings"][number]) {
  return (
    <li>
      <span class="warn">
        <Icon name="warn" />
      </span>
      <div class="cut-anywhere">
        {message} <code class="dim">{code}</code>
      </div>
    </li>
  );
}
