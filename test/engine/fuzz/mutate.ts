import { concatBytes, varintBytes, wireType } from "../../../src/model-files/wire-format.ts";
import { listFields, replaceWithin } from "./wire-tree.ts";
import type { TreeField } from "./wire-tree.ts";

type Random = () => number;

interface Mutation {
  readonly bytes: Uint8Array;
  readonly fields: readonly TreeField[];
  readonly random: Random;
}

function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

function pickOne<Item>(random: Random, choices: readonly Item[]): Item {
  const choice = choices[below(random, choices.length)];
  if (choice === undefined) throw new RangeError("There is nothing to choose from");
  return choice;
}

/** Numbers at which programs break: signs, sizes of words, and products that overflow. */
const numbers: readonly Uint8Array[] = [
  ...[
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    127,
    128,
    255,
    1000,
    65_536,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32,
    2 ** 53,
  ].map(varintBytes),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
];

function flipBit({ bytes, fields, random }: Mutation): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const { start, end } = random() < 0.7 ? pickOne(random, fields) : { start: 0, end: bytes.length };
  const position = start + below(random, Math.min(end - start, 64));
  copy[position] = (copy[position] ?? 0) ^ (1 << below(random, 8));
  return copy;
}

function overwriteBytes({ bytes, random }: Mutation): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const start = below(random, bytes.length);
  copy.fill(pickOne(random, [0, 0x7f, 0x80, 0xff]), start, start + 1 + below(random, 16));
  return copy;
}

function truncate({ bytes, fields, random }: Mutation): Uint8Array {
  const { start, bodyStart, end } = pickOne(random, fields);
  return bytes.slice(
    0,
    pickOne(random, [start, bodyStart, end, below(random, bytes.length), bytes.length - 1]),
  );
}

function editLength({ bytes, fields, random }: Mutation): Uint8Array {
  const { lengthStart, bodyStart, end } = pickOne(random, fields);
  const length = pickOne(random, [
    ...numbers,
    varintBytes(end - bodyStart + 1),
    varintBytes(end - bodyStart + 40),
  ]);
  return concatBytes([bytes.subarray(0, lengthStart), length, bytes.subarray(bodyStart)]);
}

function remove({ bytes, fields, random }: Mutation): Uint8Array {
  const { start, end, ancestors } = pickOne(random, fields);
  return replaceWithin(bytes, ancestors, { start, end, bytes: new Uint8Array() });
}

function duplicate({ bytes, fields, random }: Mutation): Uint8Array {
  const field = pickOne(random, fields);
  const { start, end, ancestors } = field;
  const copies = below(random, 20) === 0 && end - start < 200 ? 500 : 1;
  const repeated = concatBytes(Array.from({ length: copies }, () => bytes.subarray(start, end)));
  return replaceWithin(bytes, ancestors, { start: end, end, bytes: repeated });
}

function editNumber(mutation: Mutation): Uint8Array {
  const { bytes, fields, random } = mutation;
  const varints = fields.filter((field) => field.wireType === wireType.varint);
  if (varints.length === 0) return flipBit(mutation);
  const { bodyStart, end, ancestors } = pickOne(random, varints);
  return replaceWithin(bytes, ancestors, {
    start: bodyStart,
    end,
    bytes: pickOne(random, numbers),
  });
}

/** Puts the content of one field in the place of another of its kind: names cross, shapes and graphs move. */
function transplant({ bytes, fields, random }: Mutation): Uint8Array {
  const into = pickOne(random, fields);
  const kin = fields.filter(
    ({ message, number, wireType: type }) =>
      type === into.wireType &&
      ((message === into.message && number === into.number) || random() < 0.02),
  );
  const from = pickOne(random, kin.length > 0 ? kin : fields);
  const body = bytes.subarray(from.lengthStart, from.end);
  return replaceWithin(bytes, into.ancestors, {
    start: into.lengthStart,
    end: into.end,
    bytes: body,
  });
}

/** Puts a field into another message, where it may mean something else or make a nest. */
function graft({ bytes, fields, random }: Mutation): Uint8Array {
  const from = pickOne(random, fields);
  const into = pickOne(random, fields);
  const field = bytes.subarray(from.start, from.end);
  return replaceWithin(bytes, into.ancestors, { start: into.start, end: into.start, bytes: field });
}

function insertBytes({ bytes, fields, random }: Mutation): Uint8Array {
  const { start, end, bodyStart, ancestors } = pickOne(random, fields);
  const at = pickOne(random, [start, bodyStart, end]);
  const inserted = Uint8Array.from({ length: 1 + below(random, 12) }, () => below(random, 256));
  return replaceWithin(bytes, ancestors, { start: at, end: at, bytes: inserted });
}

const mutations = [
  flipBit,
  overwriteBytes,
  truncate,
  editLength,
  remove,
  remove,
  duplicate,
  duplicate,
  editNumber,
  editNumber,
  editNumber,
  transplant,
  transplant,
  transplant,
  graft,
  insertBytes,
];

/** Changes an encoded model at one place, and with halving chance at each further one. */
export function mutate(bytes: Uint8Array, random: Random): Uint8Array {
  let mutated = bytes;
  do {
    const fields = listFields(mutated);
    if (fields.length === 0) return mutated;
    mutated = pickOne(random, mutations)({ bytes: mutated, fields, random });
  } while (random() < 0.5);
  return mutated;
}
