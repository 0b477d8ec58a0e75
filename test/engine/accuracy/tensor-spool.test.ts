import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SpoolMemory, TensorSpool } from "../../../src/engine/accuracy/tensor-spool.ts";
import type { TensorData } from "../../../src/engine/runtime/tensor-data.ts";

function bytesTensor(name: string, ...values: number[]): TensorData {
  return { name, type: "uint8", shape: [values.length], bytes: Uint8Array.from(values) };
}

for (const memoryBytes of [0, 4, 1000]) {
  test(`a spool gives back what was written, with ${memoryBytes} bytes of memory`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), "spool-"));
    t.after(async () => rm(directory, { recursive: true }));
    const memory = new SpoolMemory(memoryBytes);
    {
      await using spool = new TensorSpool(directory, memory);
      await spool.write(0, [bytesTensor("x", 1, 2, 3), bytesTensor("y")]);
      await spool.write(1, [bytesTensor("x", 4, 5, 6), bytesTensor("y", 7)]);
      assert.deepEqual(await spool.read(0, "x"), bytesTensor("x", 1, 2, 3));
      assert.deepEqual(await spool.read(1, "x"), bytesTensor("x", 4, 5, 6));
      assert.deepEqual(await spool.read(0, "y"), bytesTensor("y"));
      assert.deepEqual(await spool.read(1, "y"), bytesTensor("y", 7));
      assert.equal(await spool.read(2, "x"), undefined);
      assert.equal((await readdir(directory)).length, memoryBytes < 1000 ? 1 : 0);
    }
    assert.deepEqual(await readdir(directory), []);
    assert.equal(memory.take(memoryBytes), true);
  });
}
