import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { ToneSign } from "../shared/tone-sign.tsx";

type GateResult = JobSummary["gates"][number];

/** How many of the jobs pass each gate. */
export function GateSummary({ summaries }: { readonly summaries: Iterable<JobSummary> }) {
  const jobs = [...summaries].filter(({ gates }) => gates.length > 0);
  if (jobs.length === 0) return undefined;
  return (
    <section class="card c5">
      <header>
        <h2>Gates</h2>
        <span class="dim">of {jobs.length} jobs</span>
      </header>
      <ul class="list">
        {[...groupByGate(jobs)].map(([gate, results]) => (
          <GateCounts key={gate} gate={gate} results={results} />
        ))}
      </ul>
    </section>
  );
}

function groupByGate(jobs: readonly JobSummary[]): Map<string, GateResult[]> {
  const results = jobs.flatMap(({ gates }) => gates);
  return Map.groupBy(results, ({ gate, limit }) => `${gate} ${limit}`);
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
