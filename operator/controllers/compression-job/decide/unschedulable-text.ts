import type { Target } from "../../../../src/contract/jobs/target.ts";

const schedulerPhrases: readonly (readonly [
  RegExp,
  (target: Target, ...groups: string[]) => string,
])[] = [
  [
    /^Insufficient (\S+)$/,
    (target, resource = "") => `not enough ${resource} free${requestText(target, resource)}`,
  ],
  [
    /^node\(s\) had untolerated taint\(?s?\)? ?\{?([^}]*)\}?$/,
    ({ name }, taint = "") =>
      `a taint that the target "${name}" does not tolerate (${taint.replace(/: $/, "")})`,
  ],
  [
    /^node\(s\) didn't match Pod's node affinity\/selector$/,
    ({ name }) => `not among the nodes that the target "${name}" selects`,
  ],
  [/^node\(s\) were unschedulable$/, () => "cordoned"],
];

/**
 * The scheduler's message without its counts of nodes, which change with every node and pod: the
 * status is only written again when something else is missing.
 */
export function unschedulableText(message: string, target: Target): string {
  if (message === "no nodes available to schedule pods")
    return "No node can take the worker: there are no nodes";
  const [, list] = /nodes are available: (.*?)\.(?: |$)/s.exec(message) ?? [];
  if (list === undefined) return `No node can take the worker: ${message}`;
  const reasons = list
    .split(/, (?=\d+ )/)
    .map((reason) => schedulerText(reason.replace(/^\d+ /, ""), target));
  return `No node can take the worker: ${[...new Set(reasons)].toSorted().join("; ")}`;
}

function schedulerText(reason: string, target: Target): string {
  for (const [pattern, phrase] of schedulerPhrases) {
    const match = pattern.exec(reason);
    if (match !== null) return phrase(target, ...match.slice(1));
  }
  return reason;
}

function requestText({ gpu, resources = {} }: Target, resource: string): string {
  if (resource === gpu?.resource) return ` (${gpu.count} needed)`;
  const { limits: _, ...requested } = resources;
  const requests: Readonly<Record<string, string | undefined>> = requested;
  const amount = requests[resource];
  return amount === undefined ? "" : ` (${amount} needed)`;
}
