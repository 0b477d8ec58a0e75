import { watchChanges } from "../live/service-changes.ts";
import type { JobChange } from "./fits-filters.ts";

/**
 * Gathers changes of jobs until the next frame: of each job the last one counts.
 * @returns a function that ends it
 */
export function gatherJobChanges(apply: (changes: readonly JobChange[]) => void): () => void {
  const gathered = new Map<string, JobChange>();
  let frame = 0;
  const applyGathered = () => {
    frame = 0;
    apply([...gathered.values()]);
    gathered.clear();
  };
  const stop = watchChanges(({ job }) => {
    if (job === undefined) return;
    gathered.set(job.id, job);
    if (frame === 0) frame = requestAnimationFrame(applyGathered);
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}
