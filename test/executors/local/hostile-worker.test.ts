import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { connect, createServer, type ListenOptions } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { project, startService } from "./local-service.ts";
import { namespacesMissing } from "./namespaces-missing.ts";

const workerPath = fileURLToPath(new URL("hostile-worker/main.ts", import.meta.url));
const options = { skip: namespacesMissing };

/** What answers other programs of the machine, as this one finds out: ports and sockets. */
async function listenOnMachine(t: TestContext, folder: string) {
  const network = Object.values(networkInterfaces()).flat();
  const address = network.find((each) => each?.family === "IPv4" && !each.internal)?.address;
  let connections = 0;
  const listen = async (options: ListenOptions) => {
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    t.after(() => server.close());
    await once(server.listen(options), "listening");
    return server;
  };
  const bound = (await listen({ host: "0.0.0.0", port: 0 })).address();
  assert.ok(typeof bound === "object" && bound !== null);
  const { port } = bound;
  const paths = [`${folder}.sock`, `\0hostile-${process.pid}`];
  for (const path of paths) await listen({ path });
  await writeFile(`${folder}.open`, "a file that everybody may read");
  t.after(() => rm(`${folder}.open`));
  const hosts = ["127.0.0.1", ...(address === undefined ? [] : [address])];
  for (const to of [...paths.map((path) => ({ path })), ...hosts.map((host) => ({ host, port }))]) {
    const socket = connect(to);
    await once(socket, "connect");
    socket.destroy();
  }
  const ownConnections = paths.length + hosts.length;
  return { port, address: address ?? "127.0.0.1", ownConnections, connections: () => connections };
}

test(
  "a hostile worker reads no foreign byte, and leaves service and store as they were",
  options,
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "hostile worker "));
    const secret = `${folder}.key`;
    await writeFile(secret, "the service's key");
    t.after(() => rm(secret));
    const service = await startService(t, {
      workerPath,
      folder,
      contained: true,
      secretFiles: [secret, `${folder}.missing`],
    });
    const { blobs, records } = service;
    const { sha256: foreign } = await blobs.write(Readable.from([Buffer.from("a foreign model")]));
    const upload = await blobs.write(Readable.from([Buffer.from("its own model")]));
    await records.projectBlobs.add({ project, origin: null }, upload);
    const { sha256: own } = upload;
    await mkdir(join(folder, "models"));
    await writeFile(join(folder, "models/allowed.onnx"), "an allowed model");
    const open = await listenOnMachine(t, folder);
    const executor = await service.start();
    const [other = ""] = await service.create("waits");
    await mkdir(join(service.workDirectory, other));
    await writeFile(join(service.workDirectory, other, "file"), "a file of another job");
    const name = [process.pid, foreign, other, open.port, open.address].join(".");
    const model = { source: `upload:sha256:${own}`, name };
    const id = await service.createJob({ model });
    executor.submit(project, [id]);
    const { job, lines } = await service.ended(id);
    assert.equal(job.status, "Failed");
    assert.deepEqual(
      lines.filter((line) => line.startsWith("did ")),
      ["did read its own model", "did read an allowed model", "did read 0 of /dev/null"],
    );
    assert.equal(
      lines.filter((line) => line.startsWith("could not ")).length,
      28,
      lines.join("\n"),
    );
    assert.equal(open.connections(), open.ownConnections);
    const kept = (await Array.fromAsync(blobs.read(own))).join("");
    assert.equal(kept, "its own model");
    assert.equal((await records.jobs.find(project, other))?.status, "Pending");
    const [next = ""] = await service.create("completes");
    assert.equal((await records.jobs.find(project, next))?.status, "Pending");
  },
);

test(
  "the real worker does its job in containment, with an upload of another disk",
  options,
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), "service-"));
    const otherDisk = await mkdtemp("/dev/shm/work-");
    await symlink(otherDisk, join(directory, "work"));
    const { client } = await startRunningService(t, { directory });
    t.after(() => rm(otherDisk, { recursive: true }));
    const { source } = await client.uploadModel(realModel("ocr-orientation"));
    const recipe = { evaluation: { latencyBudgetSeconds: 0.1, samples: 2 } };
    const { id } = await client.call("startCompression", {
      body: { model: { source }, target: "cpu", recipe },
    });
    for await (const _ of client.followLogs(id));
    const job = await client.call("getJob", { params: { id } });
    assert.deepEqual([job.status, job.error], ["Completed", null]);
    assert.ok(job.artifacts.some(({ name }) => name === "model.onnx"));
  },
);
