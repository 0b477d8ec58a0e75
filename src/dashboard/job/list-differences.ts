import type { Job } from "../../contract/jobs/job.ts";
import { flattenFields } from "./flatten-fields.ts";

type ComparedJob = Pick<Job, "model" | "recipe" | "telemetry">;

interface Difference {
  readonly name: string;
  readonly before: string;
  readonly now: string;
}

/** What two jobs of one model and target were requested or measured with, where it differs. */
export function listDifferences(before: ComparedJob, now: ComparedJob): Difference[] {
  const [former, present] = [listFacts(before), listFacts(now)];
  const names = [...new Set([...former.keys(), ...present.keys()])];
  return names.flatMap((name) => {
    const [was, is] = [former.get(name) ?? "none", present.get(name) ?? "none"];
    return was === is ? [] : [{ name, before: was, now: is }];
  });
}

function listFacts({ model, recipe, telemetry }: ComparedJob): ReadonlyMap<string, string> {
  const { name, runtime, executionProvider, threads } = telemetry.device ?? {};
  const measuredWith = { processor: name, runtime, executionProvider, threads };
  return new Map([
    ["model file", model.actualSha256?.slice(0, 12) ?? "none"],
    ...flattenFields(recipe),
    ...flattenFields(telemetry.device === undefined ? {} : measuredWith),
  ]);
}
