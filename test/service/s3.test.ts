import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { artifact } from "../../src/contract/jobs/artifact.ts";
import { job } from "../../src/contract/jobs/job.ts";
import { readS3Access } from "../../src/service/settings/read-credentials.ts";
import { settings } from "../../src/service/settings/settings.ts";
import { putObject } from "../../src/storage/s3/objects.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { s3FileContent, startS3Server } from "../storage/s3-server.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "s3-service-"));
  t.after(async () => rm(folder, { recursive: true }));
  return folder;
}

async function startServiceOnS3(t: TestContext) {
  const s3 = await startS3Server(t);
  const { bucket, endpoint, accessKeyId, secretAccessKey } = s3.access;
  const folder = await makeFolder(t);
  const bucketFile = path.join(folder, "s3.yaml");
  await writeFile(bucketFile, s3FileContent(s3.access));
  const credentialsFile = path.join(folder, "credentials.yaml");
  const credentials = { s3: [{ bucket, endpoint, accessKeyId, secretAccessKey }] };
  await writeFile(credentialsFile, JSON.stringify(credentials));
  const environment = {
    MOS_S3_FILE: bucketFile,
    MOS_SOURCE_CREDENTIALS_FILE: credentialsFile,
  };
  return { ...s3, service: await startRunningService(t, { environment }) };
}

test(
  "models and artifacts of the service lie only in the bucket",
  { skip: s3Missing },
  async (t) => {
    const { access, folder, service } = await startServiceOnS3(t);
    const model = await readFile(realModel("ocr-orientation"));
    const sha256 = createHash("sha256").update(model).digest("hex");
    await using bucket = createS3Client(access);
    await putObject(bucket, "team/net.onnx", { content: model });
    const ask = (method: string, at: string, body?: string | Buffer<ArrayBuffer>) => {
      const type = typeof body === "string" ? "application/json" : "application/octet-stream";
      const headers = { authorization: `Bearer ${service.token}`, "content-type": type };
      return fetch(`${service.baseUrl}${at}`, { method, headers, body: body ?? null });
    };
    assert.equal((await ask("PUT", `/models/${sha256}`, Buffer.from(model))).status, 201);
    for (const source of [`upload:sha256:${sha256}`, `s3://${access.bucket}/team/net.onnx`]) {
      const recipe = { evaluation: { level: "none" } };
      const order = JSON.stringify({ model: { source }, target: "cpu", recipe });
      const { id } = job.parse(await (await ask("POST", "/compress", order)).json());
      await (await ask("GET", `/jobs/${id}/logs`)).text();
      const ended = job.parse(await (await ask("GET", `/jobs/${id}`)).json());
      assert.equal(ended.status, "Completed", ended.error?.message);
      assert.equal(ended.model.actualSha256, sha256);
      const [result] = ended.artifacts.map((each) => artifact.parse(each));
      assert.ok(result);
      const content = await (await ask("GET", `/jobs/${id}/artifacts/${result.name}`)).bytes();
      assert.equal(createHash("sha256").update(content).digest("hex"), result.sha256);
      assert.ok((await readdir(folder, { recursive: true })).includes(keyOf(result.sha256)));
    }
    assert.ok(!(await readdir(service.directory)).includes("blobs"));
  },
);

function keyOf(sha256: string): string {
  return `blobs/${sha256.slice(0, 2)}/${sha256}`;
}

test("settings of a bucket that cannot be used are named", async (t) => {
  const folder = await makeFolder(t);
  const file = path.join(folder, "s3.yaml");
  const read = (environment: Readonly<Record<string, string>> = {}) =>
    readS3Access(settings.parse({ MOS_S3_FILE: file, ...environment }));
  await assert.rejects(read(), /S3 file ".*s3\.yaml" cannot be used: Error: ENOENT/);
  await writeFile(file, JSON.stringify({ bucket: "A", accessKeyId: "key", secretAccessKey: "" }));
  await assert.rejects(
    read(),
    /S3 file ".*s3\.yaml" cannot be used:\nbucket is "A" and must be 3 to 63 .*\nsecretAccessKey must have at least 1 character$/,
  );
  await writeFile(file, "bucket: models");
  await assert.rejects(read(), /accessKeyId is missing .*\nsecretAccessKey is missing/);
  const tooLarge = { MOS_MAX_MODEL_BYTES: String(2 ** 40) };
  await assert.rejects(read(tooLarge), /MOS_MAX_MODEL_BYTES is 1099511627776; with S3 at most/);
});
