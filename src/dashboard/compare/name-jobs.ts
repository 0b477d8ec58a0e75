import type { Job } from "../../contract/jobs/job.ts";
import { flattenFields } from "../shared/format.ts";

/** A job with what tells it from those that it is compared with. */
export interface NamedJob {
  readonly job: Job;
  readonly name: string;
}

/** Fields that say in a word what a recipe is. */
const tellingFields = ["model", "target", "scheme", "granularity", "blockSize", "name"];

/** Names jobs by what differs between them: the model, the target, and fields of the recipe. */
export function nameJobs(jobs: readonly Job[]): NamedJob[] {
  const facts = jobs.map(readFacts);
  const differing = [...new Set(facts.flatMap((each) => [...each.keys()]))].filter(
    (name) => new Set(facts.map((each) => each.get(name))).size > 1,
  );
  const isTelling = (name: string) => tellingFields.includes(name);
  const name = (each: ReadonlyMap<string, string>, fields: readonly string[]) =>
    fields.flatMap((field) => each.get(field) ?? []).join(" · ");
  const short = facts.map((each) => name(each, differing.filter(isTelling)));
  const others = differing.filter((field) => !isTelling(field));
  return jobs.map((job, index) => {
    const text = short[index] ?? "";
    const isAlone = short.filter((each) => each === text).length === 1;
    const rest = others.map((field) => `${field} ${facts[index]?.get(field) ?? "none"}`);
    const parts = isAlone ? [text] : [text, ...rest.slice(0, 2)];
    const named = parts.filter((part) => part !== "").join(" · ");
    return { job, name: named === "" ? `${job.name}, ${job.recipe.scheme}` : named };
  });
}

function readFacts({ name, model, target, recipe }: Job): ReadonlyMap<string, string> {
  const { scheme, granularity, blockSize, exclude, ...rest } = recipe;
  return new Map([
    ["model", model.name],
    ["target", target],
    ["scheme", scheme],
    ["granularity", granularity],
    ...(granularity === "block" ? [["blockSize", `${blockSize}`] as const] : []),
    ...(name === `${model.name} for ${target}` ? [] : [["name", name] as const]),
    ["weights left as they are:", String(exclude.length)],
    ...flattenFields(rest),
  ]);
}

/** The sign of a job in the chart and over its column. */
export function letterOf(index: number): string {
  return "ABCDEFGHIJKLMNOPQRSTUVWXYZ".charAt(index % 26);
}
