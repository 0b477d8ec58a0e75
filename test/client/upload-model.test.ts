import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { externalTensor } from "../support/external-model.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const client = createClient({ routes, baseUrl: "http://127.0.0.1:1/v1", token: "unused" });

for (const location of [".git/config", "parts/../.env", "parts/.secret/w.data", "../other.data"]) {
  test(`uploadModel() sends nothing of a model with external data in ${location}`, async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "hidden-"));
    t.after(() => rm(folder, { recursive: true }));
    const hidden = path.join(folder, "nets", location);
    await mkdir(path.join(folder, "nets", "parts"), { recursive: true });
    await mkdir(path.dirname(hidden), { recursive: true });
    await writeFile(hidden, "secret");
    const file = path.join(folder, "nets", "net.onnx");
    await writeTinyModel(file, { initializer: [externalTensor("w", location, 4)] });
    await assert.rejects(client.uploadModel(file), /is not sent: no part of its path/);
  });
}
