import type { JobStep } from "../../../src/kubernetes/job-identity.ts";
import type { ChildJob } from "./child-job.ts";
import type { WorkerPod } from "./worker-pod.ts";
import { childrenOf, type World } from "./world.ts";

/** The steps of a job that several pods work on, and of one that a single pod does. */
const sequences: readonly (readonly JobStep[])[] = [["shard", "optimize", "assemble"], ["work"]];

export function firstStep(shares: number): JobStep {
  return shares > 1 ? "shard" : "work";
}

export function stepAfter({ step }: ChildJob): JobStep | undefined {
  const sequence = sequences.find((steps) => step !== undefined && steps.includes(step)) ?? [];
  return sequence[sequence.findIndex((each) => each === step) + 1];
}

/** The child Job of the step that the job has come to. */
export function latestChild(world: Pick<World, "resource" | "jobs">): ChildJob | undefined {
  const children = childrenOf(world);
  const steps = sequences.flatMap((sequence) => sequence.toReversed());
  return steps.map((step) => children.find((job) => job.step === step)).find((child) => child !== undefined);
}

/** The pods of a child Job. */
export function podsOf({ pods }: Pick<World, "pods">, { uid }: ChildJob): readonly WorkerPod[] {
  return pods.filter(({ jobUid }) => jobUid === uid);
}
