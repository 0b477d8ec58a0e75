import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { batchSpec } from "../../src/contract/custom-resources/batch-resource.ts";
import { compressionJobSpec } from "../../src/contract/custom-resources/compression-job.ts";
import { helmMissing } from "../support/cluster/cluster-missing.ts";
import { programPath } from "../support/cluster/programs.ts";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const file = await readFile(join(root, ".github/workflows/release.yml"), "utf8");
const step = z.object({
  name: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
});
const { jobs } = z
  .object({
    jobs: z.record(
      z.string(),
      z.object({
        steps: z.array(step),
        strategy: z.object({ matrix: z.object({ target: z.array(z.string()) }) }).optional(),
      }),
    ),
  })
  .parse(parse(file));
const chart = z
  .object({ version: z.string(), annotations: z.record(z.string(), z.string()) })
  .parse(parse(await readFile(join(root, "charts/model-optimization/Chart.yaml"), "utf8")));

test("each action of the release is one commit, with its version", () => {
  const actions = Array.from(file.matchAll(/uses: (.*)$/gm), ([, name]) => name ?? "");
  assert.ok(actions.length > 0);
  for (const action of actions)
    assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

test("the release builds targets of the Dockerfile, and the chart's page names each image", async () => {
  const dockerfile = await readFile(join(root, "Dockerfile"), "utf8");
  const targets = jobs["image"]?.strategy?.matrix.target ?? [];
  const images = z
    .array(z.object({ name: z.string(), image: z.string() }))
    .parse(parse(chart.annotations["artifacthub.io/images"] ?? ""));
  assert.deepEqual(
    images.map(({ name }) => name),
    targets,
  );
  for (const { name, image } of images) {
    assert.match(dockerfile, new RegExp(`^FROM .* AS ${name}$`, "m"));
    assert.equal(image, `model-optimization-${name}:${chart.version}`);
  }
});

test("the examples of the chart's page are valid", () => {
  const examples = z
    .array(z.object({ kind: z.string(), spec: z.unknown() }))
    .parse(parse(chart.annotations["artifacthub.io/crdsExamples"] ?? ""));
  assert.deepEqual(
    examples.map(({ kind }) => kind),
    ["CompressionJob", "Batch"],
  );
  for (const { kind, spec } of examples) {
    const schema = kind === "Batch" ? batchSpec : compressionJobSpec;
    schema.parse(spec);
  }
});

test("the release's scripts for the tag and the chart run", { skip: helmMissing }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "release-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(join(root, "charts"), join(folder, "charts"), { recursive: true });
  await cp(join(root, "package.json"), join(folder, "package.json"));
  const run = (script: string, variables: Record<string, string>) =>
    exec("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", script], {
      cwd: folder,
      env: { PATH: `${helmFolder}:${process.env["PATH"]}`, HOME: folder, ...variables },
    });
  const helmFolder = dirname(await programPath("helm"));
  const [tag = ""] = scripts("test").filter((script) => script.includes("Chart.yaml"));
  await run(tag, { GITHUB_REF_NAME: `v${chart.version}` });
  await assert.rejects(run(tag, { GITHUB_REF_NAME: "v999.0.0" }));
  for (const script of scripts("chart").filter((each) => !each.includes("helm push")))
    await run(script, { REGISTRY: "ghcr.io/acme" });
  const packed = join(folder, `package/model-optimization-${chart.version}.tgz`);
  const { stdout } = await exec(await programPath("helm"), ["template", "mos", packed]);
  assert.match(
    stdout,
    new RegExp(`image: ghcr.io/acme/model-optimization-service:${chart.version}$`, "m"),
  );
  const { stdout: shown } = await exec(await programPath("helm"), ["show", "chart", packed]);
  assert.match(shown, /image: ghcr\.io\/acme\/model-optimization-worker-cuda:/);
});

function scripts(job: string): string[] {
  return (jobs[job]?.steps ?? []).flatMap(({ run }) => run ?? []);
}
