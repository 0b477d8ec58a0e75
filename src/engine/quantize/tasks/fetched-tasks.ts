import { rm } from "node:fs/promises";
import path from "node:path";
import type { ValueRows } from "../../checkpoints/checkpoint-values.ts";
import { encodedBytes } from "../../checkpoints/encodings.ts";
import type { RemoteFiles, RemoteRange } from "../../checkpoints/remote-files.ts";
import type { TensorSource } from "../../onnx/read-tensor.ts";
import type { Destination } from "../../onnx/write-model.ts";
import type { PlacedTask } from "./weight-task.ts";

/** Bytes that are fetched together, unless a single task needs more. */
const batchBytes = 64 * 1024 * 1024;
/** Batches that are fetched at once, ahead of the tasks. */
const batchesAhead = 3;

type NumberedTask = readonly [index: number, task: PlacedTask];

interface Batch {
  readonly tasks: readonly NumberedTask[];
  readonly ranges: readonly RemoteRange[];
}

/**
 * Gives out tasks when what they read is on this machine, in the order in which the files have it. A
 * few batches of it are here at a time.
 */
export class FetchedTasks {
  readonly #supply: AsyncGenerator<SuppliedTask>;

  constructor(tasks: readonly PlacedTask[], files: RemoteFiles, signal: AbortSignal) {
    this.#supply = supplyTasks(tasks, files, signal);
  }

  /** Tasks for one thread, which asks for the next one when it has run the last one. */
  async *take(): AsyncGenerator<NumberedTask> {
    for (let next = await this.#supply.next(); !next.done; next = await this.#supply.next()) {
      const { task, release } = next.value;
      yield task;
      await release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#supply.return(undefined);
  }
}

interface SuppliedTask {
  readonly task: NumberedTask;
  /** Deletes what was fetched once no task of the batch needs it any more. */
  readonly release: () => Promise<void>;
}

async function* supplyTasks(
  tasks: readonly PlacedTask[],
  files: RemoteFiles,
  signal: AbortSignal,
): AsyncGenerator<SuppliedTask> {
  const failure = new AbortController();
  const anySignal = AbortSignal.any([signal, failure.signal]);
  const waiting = planBatches(tasks).entries();
  const fetching: Promise<SuppliedTask[]>[] = [];
  const fetchNext = () => {
    const { value } = waiting.next();
    if (value === undefined) return;
    const [index, batch] = value;
    const fetched = fetchBatch(batch, path.join(files.directory, `batch-${index}`), {
      files,
      signal: anySignal,
    });
    // One that fails while an earlier one is awaited.
    fetched.catch(() => {});
    fetching.push(fetched);
  };
  try {
    for (let count = 0; count < batchesAhead; count++) fetchNext();
    for (let next = fetching.shift(); next !== undefined; next = fetching.shift()) {
      const supplied = await next;
      fetchNext();
      yield* supplied;
    }
  } finally {
    failure.abort();
    await Promise.allSettled(fetching);
  }
}

async function fetchBatch(
  { tasks, ranges }: Batch,
  file: string,
  { files, signal }: { readonly files: RemoteFiles; readonly signal: AbortSignal },
): Promise<SuppliedTask[]> {
  const placed: (readonly [RemoteRange, position: number])[] = [];
  let position = 0;
  for (const range of ranges) {
    await files.fetch(range, { path: file, offset: position }, signal);
    placed.push([range, position]);
    position += range.length;
  }
  const locate = (place: Destination): Destination => {
    for (const [range, start] of placed) {
      const within = place.offset - range.offset;
      if (range.path === place.path && within >= 0 && within < range.length) {
        return { path: file, offset: start + within };
      }
    }
    throw new RangeError(`Byte ${place.offset} of "${place.path}" was not fetched`);
  };
  let left = tasks.length;
  const release = async () => {
    left -= 1;
    if (left === 0) await rm(file, { force: true });
  };
  return tasks.map(([index, { task, destinations }]) => {
    const source = moveSource(task.source, locate);
    return { task: [index, { task: { ...task, source }, destinations }], release };
  });
}

/** Tasks in the order of the files, those that are near one another together. */
function planBatches(tasks: readonly PlacedTask[]): Batch[] {
  const paths: string[] = [];
  const numbered = tasks.map((task, index) => {
    const ranges = listRanges(task.task.source);
    for (const range of ranges) if (!paths.includes(range.path)) paths.push(range.path);
    return { numbered: [index, task] as const, ranges };
  });
  const byPlace = (a: RemoteRange, b: RemoteRange) =>
    paths.indexOf(a.path) - paths.indexOf(b.path) || a.offset - b.offset;
  for (const { ranges } of numbered) ranges.sort(byPlace);
  const sorted = numbered.toSorted(({ ranges: [a] }, { ranges: [b] }) => {
    if (a === undefined || b === undefined)
      return Number(a !== undefined) - Number(b !== undefined);
    return byPlace(a, b);
  });
  const batches: { tasks: NumberedTask[]; ranges: RemoteRange[] }[] = [];
  for (const { numbered: task, ranges } of sorted) {
    const last = batches.at(-1);
    const joined = joinRanges([...(last?.ranges ?? []), ...ranges].sort(byPlace));
    if (last !== undefined && countBytes(joined) <= Math.max(batchBytes, countBytes(last.ranges))) {
      last.tasks.push(task);
      last.ranges = joined;
    } else {
      batches.push({ tasks: [task], ranges: joinRanges(ranges) });
    }
  }
  return batches;
}

function countBytes(ranges: readonly RemoteRange[]): number {
  return ranges.reduce((sum, { length }) => sum + length, 0);
}

/** @param ranges sorted by their places */
function joinRanges(ranges: readonly RemoteRange[]): RemoteRange[] {
  const joined: { path: string; offset: number; length: number }[] = [];
  for (const { path: file, offset, length } of ranges) {
    const last = joined.at(-1);
    const lastEnd = last === undefined ? 0 : last.offset + last.length;
    if (last?.path === file && offset <= lastEnd) {
      last.length = Math.max(lastEnd, offset + length) - last.offset;
    } else {
      joined.push({ path: file, offset, length });
    }
  }
  return joined;
}

/** What a task reads of files. */
function listRanges(source: TensorSource): RemoteRange[] {
  if (source.kind === "memory") return [];
  if (source.kind === "file") throw new TypeError("Only checkpoints are read from elsewhere");
  return source.pieces.flatMap((piece) => {
    if (piece.kind === "rotary") return [];
    const { blockScales } = piece;
    return [piece, ...(blockScales === undefined ? [] : [blockScales.scales])].map(
      ({ path: file, offset, encoding, rows, columns }) => {
        return { path: file, offset, length: encodedBytes(encoding, rows * columns) };
      },
    );
  });
}

function moveSource(source: TensorSource, locate: (place: Destination) => Destination) {
  if (source.kind !== "checkpoint") return source;
  const pieces = source.pieces.map((piece): ValueRows => {
    if (piece.kind === "rotary") return piece;
    const { blockScales } = piece;
    const moved = { ...piece, ...locate(piece) };
    if (blockScales === undefined) return moved;
    const { scales } = blockScales;
    return { ...moved, blockScales: { ...blockScales, scales: { ...scales, ...locate(scales) } } };
  });
  return { ...source, pieces };
}
