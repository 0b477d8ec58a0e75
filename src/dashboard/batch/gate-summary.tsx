import type { JobSummary } from "../../contract/job-summary.ts";
import { ToneSign } from "../shared/tone-sign.tsx";

type GateResult = JobSummary["gates"][number];

/** How many of the jobs pass each gate. */
export function GateSummary({ summaries }: { readonly summaries: Iterable<JobSummary> }) {
  const jobs = [...summaries].filter(({ gates }) => gates.length > 0);
  if (jobs.length === 0) return undefined;
  const byGate = Map.groupBy(
    jobs.flatMap(({ gates }) => gates),
    ({ gate, limit }) => `${gate} ${limit}`,
  );
  return (
    <section class="card c5">
      <header>
        <h2>Gates</h2>
        <span class="dim">of {jobs.length} jobs</span>
      </header>
      <ul class="list">
        {[...byGate].map(([gate, results]) => (
          <GateCounts key={gate} gate={gate} results={results} />
        ))}
      </ul>
    </section>
  );
}

interface GateCountsProps {
  readonly gate: string;
  readonly results: readonly GateResult[];
}

function GateCounts({ gate, results }: GateCountsProps) {
  const missed = results.filter(({ passed }) => !passed);
  const failed = missed.filter(({ level }) => level === "fail").length;
  const warned = missed.length - failed;
  return (
    <li>
      <span class="mono grow">{gate}</span>
      {failed > 0 && <ToneSign tone="bad" icon="bad" words={`${failed} failed`} />}
      {warned > 0 && <ToneSign tone="warn" icon="warn" words={`${warned} warned`} />}
      {missed.length === 0 && <ToneSign tone="calm" icon="check" words="all passed" />}
    </li>
  );
}
