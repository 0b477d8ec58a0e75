import { z } from "zod";
import { projectName } from "../contract/project.ts";
import type { Kept, KeptTimes, Retention } from "../records/jobs/retention.ts";

const dayMs = 86_400_000;
const maxDays = 36_500;
const forever = "forever";
/** Stands for all projects that are not named. */
const others = "";

/** For each project, the days for which something is kept; `Infinity` for good. */
type KeptDays = ReadonlyMap<string, number>;

/** Days of all projects, of some, or both: `30`, `team-a=7`, `30,team-a=7,team-b=forever`. */
export const keptDays = z.string().transform((list, context): KeptDays => {
  const days = new Map<string, number>();
  for (const entry of list.split(",")) {
    const [, name = others, text = ""] = /^(?:([^=]+)=)?(\w+)$/.exec(entry.trim()) ?? [];
    const kept = parseKeptDays(text);
    const isName = name === others || projectName.safeParse(name).success;
    if (kept === undefined || !isName || days.has(name)) {
      const allowed = `days from 1 to ${maxDays}, or ${forever}`;
      context.addIssue(`must be ${allowed}; and for each project besides at most one PROJECT=DAYS`);
      return z.NEVER;
    }
    days.set(name, kept);
  }
  return days;
});

function parseKeptDays(text: string): number | undefined {
  if (text === forever) return Infinity;
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return days >= 1 && days <= maxDays ? days : undefined;
}

/** What has which time to live in each project. */
export function buildRetention(settings: Readonly<Record<Kept, KeptDays | undefined>>): Retention {
  const kinds = ["jobs", "logs", "artifacts", "models"] as const;
  const names = new Set(kinds.flatMap((kept) => [...(settings[kept]?.keys() ?? [])]));
  const readTimes = (name: string): KeptTimes =>
    Object.fromEntries(
      kinds.map((kept) => {
        const days = settings[kept]?.get(name);
        return [kept, days === undefined ? undefined : days * dayMs];
      }),
    );
  const projects = [...names].filter((name) => name !== others);
  return {
    ...readTimes(others),
    projects: new Map(projects.map((name) => [name, readTimes(name)])),
  };
}
