import type { Job } from "../../contract/job.ts";
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
        {warnings.map(({ code, message }) => (
          <li key={code}>
            <span class="warn">
              <Icon name="warn" />
            </span>
            <div class="cut-anywhere">
              {message} <code class="dim">{code}</code>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
