import type { MeasureOptions } from "./candidate.ts";
import { dbToNoise } from "./search/prediction.ts";

/** Operators in integers that are measured together. */
export interface StaticPart {
  /** Positions of the weights. */
  readonly weights: readonly number[];
  /** On the calibration's samples: the time that integers save goes by it. */
  readonly multiplications: number;
}

interface UnroundedOptions {
  /** Whether other weights are rounded too. */
  readonly hasOthers: boolean;
  /** SQNR of the model with these weights as they are, dB; undefined where it cannot run. */
  readonly measureSqnrDb: (
    unrounded: ReadonlyMap<number, string>,
    options?: MeasureOptions,
  ) => Promise<number | undefined>;
  readonly log: (line: string) => void;
}

/** SQNR from which on all operators stay in integers, dB. */
const minSqnrDb = 20;
/** SQNR of an output from which on what its softmax is taken of does not count. */
const sureSqnrDb = 30;
/** What the SQNR is to have beyond that where some do not, dB: other samples have less. */
const marginDb = 1;
/** SQNR that integers may cost where the rounding of other weights leaves little more, dB. */
const maxLossDb = 3;
/** Parts that are measured one by one: each costs a run of the model. */
const maxParts = 80;
/** Part of all multiplications that an operator saves whatever its size. */
const overhead = 1 / 256;

/**
 * The static operators that stay in floating point, by their weights, and why: the errors of
 * operators add up, so that those with the largest error for the time that they save go first, as
 * many as are needed. Post-training quantization by such sensitivities: HAWQ-V2, Z. Dong et al.,
 * arXiv 1911.03852, measured here at the output.
 */
export async function chooseUnrounded(
  all: readonly StaticPart[],
  { hasOthers, measureSqnrDb, log }: UnroundedOptions,
): Promise<ReadonlyMap<number, string>> {
  const addInputs = async (unrounded: ReadonlyMap<number, string>, sqnrDb: number) => {
    if (sqnrDb < minSqnrDb) return sqnrDb;
    const before = await measureSqnrDb(unrounded, { beforeSoftmax: true });
    return Math.min(sqnrDb, before ?? -Infinity);
  };
  const measure = async (unrounded: ReadonlyMap<number, string>) =>
    addInputs(unrounded, (await measureSqnrDb(unrounded)) ?? -Infinity);
  const output = await measureSqnrDb(new Map());
  if (output === undefined || output >= sureSqnrDb) return new Map();
  const sqnrDb = await addInputs(new Map(), output);
  if (sqnrDb >= minSqnrDb) return new Map();
  log(`With all static operators: SQNR ${sqnrDb.toFixed(1)} dB`);
  const everything = nameWeights(all, () => "is measured without");
  const others = hasOthers ? await measure(everything) : Infinity;
  const least = Math.min(minSqnrDb + marginDb, others - maxLossDb);
  if (sqnrDb >= least) return new Map();
  const parts = joinNeighbours(all);
  const losses = new Map<StaticPart, number>();
  for (const part of parts) {
    const rest = parts.filter((each) => each !== part);
    const unrounded = nameWeights(rest, () => "is measured without");
    losses.set(part, (await measureSqnrDb(unrounded, { beforeSoftmax: true })) ?? -Infinity);
  }
  const total = parts.reduce((sum, { multiplications }) => sum + multiplications, 0);
  const harm = ([{ multiplications }, lossDb]: [StaticPart, number]) =>
    dbToNoise(lossDb) / (multiplications + total * overhead);
  const ordered = [...losses].toSorted((a, b) => harm(b) - harm(a)).map(([part]) => part);
  const nameFirst = (count: number) =>
    nameWeights(
      ordered.slice(0, count),
      (part) =>
        `would cost too much in integers: ${losses.get(part)?.toFixed(1)} dB of SQNR by itself`,
    );
  const count = await findLeastCount(
    ordered.length,
    async (some) => (await measure(nameFirst(some))) >= least,
  );
  log(`${count} of ${parts.length} parts of the static operators cost too much accuracy`);
  return nameFirst(count);
}

/** The least count that is enough, by halves; the limit where no less is. */
async function findLeastCount(
  limit: number,
  isEnough: (count: number) => Promise<boolean>,
): Promise<number> {
  let [low, high] = [0, limit];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isEnough(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** As many parts as are measured at most, of operators next to each other. */
function joinNeighbours(parts: readonly StaticPart[]): StaticPart[] {
  const size = Math.ceil(parts.length / maxParts);
  return Array.from({ length: Math.ceil(parts.length / size) }, (_, index) => {
    const members = parts.slice(index * size, (index + 1) * size);
    return {
      weights: members.flatMap(({ weights }) => weights),
      multiplications: members.reduce((sum, each) => sum + each.multiplications, 0),
    };
  });
}

function nameWeights(
  parts: readonly StaticPart[],
  reason: (part: StaticPart) => string,
): ReadonlyMap<number, string> {
  return new Map(
    parts.flatMap((part) => part.weights.map((index) => [index, reason(part)] as const)),
  );
}
