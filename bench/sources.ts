import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../src/client/create-client.ts";
import { routes } from "../src/contract/routes/routes.ts";
import { hashStoredFile } from "../src/storage/hash-stored-file.ts";
import { commit, startHubStandIn } from "../test/storage/hub-stand-in.ts";
import { startS3Server } from "../test/storage/s3-server.ts";
import { startCuttingRelay } from "../test/support/cutting-relay.ts";
import { startRunningService } from "../test/support/running-service.ts";
import { limitRow, reportBench, type BenchRow } from "./result.ts";
import { storeObject } from "./sources/store-object.ts";
import { writeLargeModel } from "./sources/write-large-model.ts";

/**
 * A model with external data by `PUT`, `hf://` (a stand-in for the Hub) and `s3://` (a real server),
 * over connections that break at random bytes. Argument: bytes of the model.
 */
const bytes = Number(process.argv[3] ?? 3e9);
const cutBetween = [bytes / 100, bytes / 10].map(Math.round) as [number, number];
/** Bytes that may be sent twice, of the model's. */
const sentTwice = 0.01;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const folder = await mkdtemp(join(tmpdir(), "sources-"));
cleanup.defer(() => rm(folder, { recursive: true }));
const names = await writeLargeModel(folder, bytes);
const files = Object.fromEntries(names.map((name) => [name, join(folder, name)]));
const hashes = new Map<string, string>();
let size = 0;
for (const [name, file] of Object.entries(files)) {
  size += (await stat(file)).size;
  const { signal } = new AbortController();
  hashes.set(name, (await hashStoredFile(file, { signal, onProgress: () => {} })).sha256);
}

type Relay = Awaited<ReturnType<typeof startCuttingRelay>>;
const relays = new Map<string, Relay>();
const { access } = await startS3Server(owner);
const hub = await startHubStandIn(owner, files, (origin) => relay("hf://", origin));
const service = await startRunningService(owner, { environment: await makeEnvironment() });
const rows: BenchRow[] = [];
await measure("PUT", async () => {
  const origin = await relay("PUT", new URL(service.baseUrl).origin);
  const client = createClient({ routes, baseUrl: `${origin}/v1`, token: service.token });
  const { source } = await client.uploadModel(files["net.onnx"] ?? "");
  return fetchByJob(source);
});
await measure("hf://", () => fetchByJob(`hf://acme/public@${commit}/net.onnx`));
for (const [name, file] of Object.entries(files)) await storeObject(access, `nets/${name}`, file);
await measure("s3://", () => fetchByJob(`s3://${access.bucket}/nets/net.onnx`));
await reportBench("sources", rows);

async function relay(source: string, origin: string): Promise<string> {
  const started = await startCuttingRelay(owner, origin, cutBetween);
  relays.set(source, started);
  return started.origin;
}

async function makeEnvironment(): Promise<Record<string, string>> {
  const file = join(folder, "credentials.yaml");
  const { isPathStyle: pathStyle, ...rest } = access;
  const s3 = [{ ...rest, pathStyle, endpoint: await relay("s3://", access.endpoint) }];
  await writeFile(file, JSON.stringify({ s3, hf: [{ endpoint: hub.endpoint }] }));
  return { MOS_SOURCE_CREDENTIALS_FILE: file, MOS_ALLOW_PRIVATE_ADDRESSES: "true" };
}

/** Whether a job that only plans got the right bytes, of each file. */
async function fetchByJob(source: string): Promise<boolean> {
  const body = { model: { source }, target: "cpu", dryRun: true };
  const { id } = await service.client.call("startCompression", { body });
  const lines: string[] = [];
  for await (const { text } of service.client.followLogs(id)) lines.push(text);
  const job = await service.client.call("getJob", { params: { id } });
  if (job.status !== "Completed") throw new Error(job.error?.message ?? lines.join("\n"));
  return [...hashes.values()].every((hash) => lines.some((line) => line.endsWith(hash)));
}

async function measure(source: string, fetchFiles: () => Promise<boolean>): Promise<void> {
  const start = performance.now();
  const isSame = await fetchFiles();
  const seconds = (performance.now() - start) / 1000;
  const { counted } = relays.get(source) ?? { counted: { bytes: NaN, cuts: 0 } };
  const figure = (what: string, unit: string, ours: number) => {
    rows.push({ what: `${source}: ${what}`, unit, ours, peer: null, bar: "none", met: null });
  };
  rows.push(limitRow(`${source}: files with wrong bytes`, "files", isSame ? 0 : 1, 0));
  const again = (counted.bytes - size) / size;
  rows.push(limitRow(`${source}: sent again, of the model's bytes`, "ratio", again, sentTwice));
  figure("sent", "GB", counted.bytes / 1e9);
  figure("broken connections", "cuts", counted.cuts);
  figure("time to the end of a job that only plans", "s", seconds);
}
