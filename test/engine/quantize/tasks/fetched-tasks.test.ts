import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import type { RemoteFiles, RemoteRange } from "../../../../src/engine/checkpoints/remote-files.ts";
import { FetchedTasks } from "../../../../src/engine/quantize/tasks/fetched-tasks.ts";
import type { PlacedTask } from "../../../../src/engine/quantize/tasks/weight-task.ts";

const mebibyte = 1024 ** 2;

/** A task that copies bytes of a file that is elsewhere. */
function copyTask(...places: readonly (readonly [offset: number, bytes: number])[]): PlacedTask {
  const pieces = places.map(([offset, bytes]) => {
    const stored = { kind: "stored", path: "/elsewhere/shard", encoding: "F32" } as const;
    return { ...stored, offset, rows: 1, columns: bytes / 4 };
  });
  const length = places.reduce((sum, [, bytes]) => sum + bytes, 0);
  const bytes = { elements: length / 4, sourceBytes: length, resultBytes: length };
  const source = { kind: "checkpoint", type: "float32", length, pieces } as const;
  const fields = { kind: "copy", sourceType: "float32", outputs: { values: 0 } } as const;
  return { task: { ...fields, ...bytes, source }, destinations: new Map() };
}

async function makeRemote(t: TestContext, onFetch: (range: RemoteRange) => void = () => {}) {
  const directory = await mkdtemp(path.join(tmpdir(), "fetched-"));
  t.after(() => rm(directory, { recursive: true }));
  const fetched: RemoteRange[] = [];
  const remote: RemoteFiles = {
    directory,
    async fetch(range, to) {
      onFetch(range);
      fetched.push(range);
      await writeFile(to.path, "", { flag: "a" });
    },
  };
  return { directory, fetched, remote };
}

test("tasks come in the order of the file, and a few batches of it are here at a time", async (t) => {
  const { directory, fetched, remote } = await makeRemote(t);
  const tasks = Array.from({ length: 12 }, (_, i) => copyTask([i * 50 * mebibyte, 50 * mebibyte]));
  await using supply = new FetchedTasks(tasks.toReversed(), remote, t.signal);
  const order: number[] = [];
  for await (const [index] of supply.take()) {
    order.push(index);
    assert.ok((await readdir(directory)).length <= 4);
  }
  assert.deepEqual(order, [...tasks.keys()].toReversed());
  assert.equal(fetched.length, 12);
  assert.deepEqual(await readdir(directory), []);
});

test("what is near is fetched at once, and what two tasks read is fetched once", async (t) => {
  const { fetched, remote } = await makeRemote(t);
  const tasks = [copyTask([0, 4096], [8192, 4096]), copyTask([4096, 4096]), copyTask([0, 4096])];
  await using supply = new FetchedTasks([...tasks, copyTask([mebibyte, 64])], remote, t.signal);
  const moved: PlacedTask[] = [];
  for await (const [index, task] of supply.take()) moved[index] = task;
  assert.deepEqual(
    fetched.map(({ offset, length }) => [offset, length]),
    [
      [0, 12_288],
      [mebibyte, 64],
    ],
  );
  const offsets = moved.map(({ task: { source } }) =>
    source.kind === "checkpoint"
      ? source.pieces.map((piece) => piece.kind === "stored" && piece.offset)
      : [],
  );
  assert.deepEqual(offsets, [[0, 8192], [4096], [0], [12_288]]);
});

test("a batch that cannot be fetched ends all", async (t) => {
  const { remote } = await makeRemote(t, ({ offset }) => {
    if (offset > 0) throw new Error("The host is away");
  });
  const tasks = Array.from({ length: 3 }, (_, i) => copyTask([i * 64 * mebibyte, 64 * mebibyte]));
  const taken: number[] = [];
  const takeAll = async () => {
    await using supply = new FetchedTasks(tasks, remote, t.signal);
    for await (const [index] of supply.take()) taken.push(index);
  };
  await assert.rejects(takeAll(), /The host is away/);
  assert.deepEqual(taken, [0]);
});
