import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import type { Pod, Stored } from "../../src/kubernetes/resources.ts";

interface SeenPod {
  readonly name: string;
  readonly phase: string;
  readonly isGone: boolean;
}

/** Every pod that a job has had. */
export class PodHistory {
  readonly #byJob = new Map<string, Map<string, SeenPod>>();
  /** Jobs that could have had two pods running at once. */
  readonly #doubled = new Set<string>();

  observe(pod: Stored<Pod>): void {
    this.#update(pod, false);
  }

  remove(pod: Stored<Pod>): void {
    this.#update(pod, true);
  }

  get jobsWithPods(): number {
    return this.#byJob.size;
  }

  podsOf(job: string): { name: string; hasSucceeded: boolean }[] {
    const pods = Array.from(this.#byJob.get(job)?.values() ?? []);
    return pods.map(({ name, phase }) => ({ name, hasSucceeded: phase === "Succeeded" }));
  }

  /** Jobs that could have had two pods running at once, or two that succeeded. */
  countDuplicated(): number {
    const jobs = Array.from(this.#byJob.keys()).filter(
      (job) =>
        this.#doubled.has(job) ||
        this.podsOf(job).filter(({ hasSucceeded }) => hasSucceeded).length > 1,
    );
    return jobs.length;
  }

  #update({ metadata, status }: Stored<Pod>, isGone: boolean): void {
    const { name, uid, labels = {} } = metadata;
    const job = labels[resourceLabels.job] ?? "";
    const pods = this.#byJob.get(job) ?? new Map<string, SeenPod>();
    pods.set(uid, { name, phase: status?.phase ?? "Pending", isGone });
    this.#byJob.set(job, pods);
    if (Array.from(pods.values()).filter(mayRun).length > 1) this.#doubled.add(job);
  }
}

function mayRun({ phase, isGone }: SeenPod): boolean {
  return !isGone && phase !== "Succeeded" && phase !== "Failed";
}
