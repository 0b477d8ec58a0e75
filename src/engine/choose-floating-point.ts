import type { MeasureOptions } from "./candidate.ts";
import { dbToNoise } from "./search/prediction.ts";

/** Operators in integers that are measured together. */
export interface StaticPart {
  /** Positions of the weights. */
  readonly weights: readonly number[];
  /** On the calibration's samples: the time that integers save goes by it. */
  readonly multiplications: number;
}

/** Weights whose operators compute as the original's, by their position, and why. */
export interface RestoredWeights {
  /** Stored quantized, and restored when the runtime loads the model. */
  readonly folded: ReadonlyMap<number, string>;
  /** Stored in half precision, and restored as well. */
  readonly halved: ReadonlyMap<number, string>;
}

interface FloatingPointOptions {
  /** Whether other weights are rounded too. */
  readonly hasOthers: boolean;
  /** SQNR of the model with these weights restored, dB; undefined where it cannot run. */
  readonly measureSqnrDb: (
    restored: RestoredWeights,
    options?: MeasureOptions,
  ) => Promise<number | undefined>;
  readonly log: (line: string) => void;
}

/** SQNR at and above which all operators stay in integers, dB. */
const minSqnrDb = 20;
/** SQNR of an output at and above which what its softmax is taken of does not count. */
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
 * arXiv 1911.03852, measured here at the output. Their weights are folded where that leaves the
 * SQNR that is wanted, else halved.
 */
export async function chooseFloatingPoint(
  all: readonly StaticPart[],
  { hasOthers, measureSqnrDb, log }: FloatingPointOptions,
): Promise<RestoredWeights> {
  const addInputs = async (restored: RestoredWeights, sqnrDb: number) => {
    if (sqnrDb < minSqnrDb) return sqnrDb;
    const before = await measureSqnrDb(restored, { beforeSoftmax: true });
    return Math.min(sqnrDb, before ?? -Infinity);
  };
  const measure = async (restored: RestoredWeights) =>
    addInputs(restored, (await measureSqnrDb(restored)) ?? -Infinity);
  const output = await measureSqnrDb(noWeights);
  if (output === undefined || output >= sureSqnrDb) return noWeights;
  const sqnrDb = await addInputs(noWeights, output);
  if (sqnrDb >= minSqnrDb) return noWeights;
  log(`With all static operators: SQNR ${sqnrDb.toFixed(1)} dB`);
  const everything = nameWeights(all, () => "is measured without");
  const others = hasOthers ? await measure(halve(everything)) : Infinity;
  const least = Math.min(minSqnrDb + marginDb, others - maxLossDb);
  if (sqnrDb >= least) return noWeights;
  const parts = joinNeighbours(all);
  const losses = new Map<StaticPart, number>();
  for (const part of parts) {
    const rest = parts.filter((each) => each !== part);
    const without = halve(nameWeights(rest, () => "is measured without"));
    losses.set(part, (await measureSqnrDb(without, { beforeSoftmax: true })) ?? -Infinity);
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
  const isEnough = async (restored: RestoredWeights) => (await measure(restored)) >= least;
  const count = await findLeastCount(ordered.length, async (some) =>
    isEnough(halve(nameFirst(some))),
  );
  log(`${count} of ${parts.length} parts of the static operators cost too much accuracy`);
  const chosen = nameFirst(count);
  const folded = { ...noWeights, folded: chosen };
  return (await isEnough(folded)) ? folded : halve(chosen);
}

const noWeights: RestoredWeights = { folded: new Map(), halved: new Map() };

function halve(halved: ReadonlyMap<number, string>): RestoredWeights {
  return { ...noWeights, halved };
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
function joinNeighbours(all: readonly StaticPart[]): StaticPart[] {
  const size = Math.ceil(all.length / maxParts);
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) => {
    const members = all.slice(index * size, (index + 1) * size);
    return {
      weights: members.flatMap((each) => each.weights),
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
