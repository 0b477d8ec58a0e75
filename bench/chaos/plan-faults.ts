const programNames = ["operator", "service"] as const;
const cuts = ["break", "refuse", "silence"] as const;
const nodeLosses = ["evict", "silence", "stick", "remove"] as const;

export type ProgramName = (typeof programNames)[number];
export type Cut = (typeof cuts)[number];
export type NodeLoss = (typeof nodeLosses)[number];

interface FaultTimes {
  /** From when that which it hits works. */
  readonly afterMs: number;
  readonly forMs: number;
}

/** Kills and cuts hit a program, node losses the node of that number. */
export type ProgramFault = FaultTimes & { readonly target: ProgramName } & (
    | { readonly kind: "kill" }
    | { readonly kind: "cut"; readonly how: Cut }
  );
export type NodeFault = FaultTimes & {
  readonly kind: "node loss";
  readonly target: "nodes";
  readonly node: number;
  readonly how: NodeLoss;
};
export type Fault = ProgramFault | NodeFault;

const maxAfterMs = 2_000;
/** An operator that is silent for longer than 10 s loses its Lease, and ends. */
const maxForMs = 13_000;

/** As many kills as network cuts and as node losses, which follow from a seed. */
export function planFaults(count: number, seed: number, nodes: number): Fault[] {
  const random = pseudoRandomNumbers(seed);
  const draw = () => random.next().value;
  const choose = <T>(choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(draw() * choices.length)] ?? choices[0];
  const planFault = (_: unknown, index: number): Fault => {
    const times = { afterMs: draw() * maxAfterMs, forMs: draw() ** 3 * maxForMs };
    const kind = (["kill", "cut", "node loss"] as const)[index % 3];
    if (kind === "node loss") {
      const node = Math.floor(draw() * nodes);
      return { ...times, kind, target: "nodes", node, how: choose(nodeLosses) };
    }
    const target = choose(programNames);
    return kind === "cut"
      ? { ...times, kind, target, how: choose(cuts) }
      : { ...times, kind: "kill", target };
  };
  return Array.from({ length: count }, planFault);
}

/** Random numbers from 0 to 1 that are the same in every run with the seed. */
function* pseudoRandomNumbers(state: number): Generator<number, never> {
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}
