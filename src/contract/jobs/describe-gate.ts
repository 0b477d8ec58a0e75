import { type GateKind, type GateName, gateTable } from "./gate-table.ts";
import type { GateResult } from "./gate.ts";
import { isUndecided } from "./undecided-gate.ts";

interface GateWording {
  /** What a change is compared with, such as the name of a branch. */
  readonly against?: string | undefined;
  /** Makes untrusted text harmless where the words are shown. */
  readonly quote?: (text: string) => string;
}

/**
 * What a gate found and what it allows, as it follows the name of a job:
 * `lost 15.7 dB against main; 3 dB are allowed`.
 */
export function describeGate(
  result: GateResult,
  { against = "the baseline", quote = (text) => text }: GateWording = {},
): string {
  const { limit, actual, interval, note } = result;
  const { bound, title, format, finding }: GateKind = gateTable[result.gate];
  const reason = note === undefined ? "" : ` (${quote(note)})`;
  if (actual === null) {
    return note === undefined
      ? `has no measured figure for "${title}"; ${allowance(bound, formatLimit(result))}`
      : `has no verdict on "${title}"${reason}`;
  }
  const size = "change" in gateTable[result.gate] ? Math.abs(actual) : actual;
  const figure = format(size, distinctDigits(size, limit, format));
  const found = finding(figure, actual, against) + describeInterval(interval, format);
  const sentence = `${found}; ${allowance(bound, formatLimit(result))}`;
  // Its note has the interval once more, and what comes next.
  return isUndecided(result)
    ? `could not be timed precisely enough to decide: it ${sentence}`
    : sentence + reason;
}

/** The same of gates that have no verdict for one reason, which their note has. */
export function describeGates(alike: readonly GateResult[], wording: GateWording = {}): string {
  const [first, ...others] = alike;
  if (first === undefined) return "";
  if (others.length === 0) return describeGate(first, wording);
  const { quote = (text) => text } = wording;
  const titles = alike.map(({ gate }) => `"${gateTable[gate].title}"`);
  const list = `${titles.slice(0, -1).join(", ")} and ${titles.at(-1)}`;
  return `has no verdict on ${list} (${quote(first.note ?? "")})`;
}

/** A figure that a gate limits, with enough decimals to differ from the limit as shown. */
export function formatLimited(
  { gate, limit }: { readonly gate: GateName; readonly limit: number },
  value: number,
): string {
  const { format } = gateTable[gate];
  return format(value, distinctDigits(value, limit, format));
}

/** How sure a finding is. */
function describeInterval(interval: GateResult["interval"], format: GateKind["format"]): string {
  if (interval === undefined) return "";
  const [low, high] = [format(interval.low, 1), format(interval.high, 1)];
  return ` (95 % sure: ${low} to ${high})`;
}

/** The gates that did not pass, the gravest first; changes say more than figures. */
export function rankMissedGates(gates: readonly GateResult[]): GateResult[] {
  return gates.filter(({ passed }) => !passed).toSorted((one, other) => rank(one) - rank(other));
}

function rank({ gate, level }: GateResult): number {
  return (level === "fail" ? 0 : 2) + ("change" in gateTable[gate] ? 0 : 1);
}

/** What a gate holds a figure to: `Accuracy (SQNR): at least 20 dB`. */
export function describeLimit(gate: { readonly gate: GateName; readonly limit: number }): string {
  const { title, bound } = gateTable[gate.gate];
  return `${title}: ${bound === "max" ? "at most" : "at least"} ${formatLimit(gate)}`;
}

const mostDigits = 6;

/** A limit as it was set. */
export function formatLimit({
  gate,
  limit,
}: {
  readonly gate: GateName;
  readonly limit: number;
}): string {
  return gateTable[gate].format(limit, mostDigits);
}

/** As many decimals as tell a figure from its limit, where the two differ. */
function distinctDigits(value: number, limit: number, format: GateKind["format"]): number {
  let digits = value < 1 && format(1, 0) === "1" ? 4 : 1;
  const limitText = format(limit, mostDigits);
  while (digits < mostDigits && value !== limit && format(value, digits) === limitText) digits++;
  return digits;
}

function allowance(bound: GateKind["bound"], limit: string): string {
  const isPlural = limit.includes(" ") && !limit.startsWith("1 ");
  const verb = isPlural ? "are" : "is";
  return `${limit} ${verb} ${bound === "max" ? "allowed" : "required"}`;
}
