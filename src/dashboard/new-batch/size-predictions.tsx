import { useSignal } from "@preact/signals";
import { type BatchPlan, listPlannedJobs } from "./plan-batches.ts";
import { describePlan, planJob } from "../new-job/plan-job.ts";
import { Button } from "../shared/button.tsx";
import { sayError } from "../shared/notice.tsx";

/** More plans than these would keep the workers from other people's jobs. */
const mostPlans = 24;

interface Prediction {
  readonly what: string;
  readonly size: string;
}

/** How large each result will be, by dry runs one after the other, which write nothing. */
export function SizePredictions({ plan }: { readonly plan: BatchPlan }) {
  const predictions = useSignal<readonly Prediction[]>([]);
  const isBusy = useSignal(false);
  const jobs = listPlannedJobs(plan);
  const predict = async () => {
    isBusy.value = true;
    predictions.value = [];
    for (const { what, request } of jobs.slice(0, mostPlans)) {
      const size = await planJob("compress", request).then(describePlan, sayError);
      predictions.value = [...predictions.value, { what, size }];
    }
    isBusy.value = false;
  };
  if (jobs.length === 0) return undefined;
  return (
    <div class="predictions" role="status">
      <Button onClick={() => isBusy.value || predict()}>
        {isBusy.value
          ? `Predicting ${predictions.value.length + 1} of ${Math.min(mostPlans, jobs.length)}…`
          : "Predict sizes"}
      </Button>
      {jobs.length > mostPlans && <span class="soft">of the first {mostPlans} jobs</span>}
      {predictions.value.length > 0 && (
        <dl class="pairs">
          {predictions.value.map(({ what, size }) => (
            <div key={what} class="pair">
              <dt>{what}</dt>
              <dd>{size}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
