import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { z } from "zod";
import { pythonInterpreter } from "../support/python.ts";
import { realModel, realModelMissing } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

const exec = promisify(execFile);
const guide = new URL("../../docs/language-models.md", import.meta.url);

const jobContent = z.object({
  telemetry: z.object({
    size: z.object({ resultBytes: z.int() }),
    warnings: z.array(z.object({ code: z.string() })),
  }),
});

/** The blocks of code of a page in a language, one after the other. */
async function readCode(language: string): Promise<string> {
  const text = await readFile(guide, "utf8");
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"));
  return Array.from(blocks, ([, code]) => code).join("\n");
}

test(
  "the guide's session ends with a sentence",
  { skip: await realModelMissing("smollm2") },
  async (t) => {
    const { baseUrl, token } = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
    const cwd = await mkdtemp(path.join(tmpdir(), "guide-"));
    t.after(() => rm(cwd, { recursive: true }));
    await symlink(realModel("smollm2"), path.join(cwd, "smollm2.gguf"));
    const env = { ...process.env, MOS: baseUrl, TOKEN: token };
    const session = await exec("bash", ["-euc", await readCode("sh")], { cwd, env });
    assert.match(session.stdout, /"status":"Completed"/);
    const [, ratio] = /"perplexityRatio":([0-9.]+)/.exec(session.stdout) ?? [];
    assert.ok(Math.abs(Number(ratio) - 1) < 0.05, session.stdout);
    assert.match(session.stdout, /genai_config\.json/);
    const { telemetry } = jobContent.parse(
      JSON.parse(await readFile(path.join(cwd, "job.json"), "utf8")),
    );
    assert.ok(telemetry.size.resultBytes < 108e6, String(telemetry.size.resultBytes));
    assert.deepEqual(
      telemetry.warnings.map(({ code }) => code),
      ["latency_not_timed"],
    );
    const { stdout } = await exec(pythonInterpreter, ["-c", await readCode("python")], { cwd });
    assert.match(stdout, /Paris/);
  },
);
