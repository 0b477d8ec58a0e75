import { z } from "zod";
import type { AttestedJob } from "./attestation.ts";
import { describeGate } from "../jobs/describe-gate.ts";

/** A bill of materials in the form of CycloneDX, whose own schema says what it has. */
export const modelBom = z
  .looseObject({ bomFormat: z.literal("CycloneDX"), specVersion: z.literal("1.6") })
  .meta({ id: "ModelBom" });

/** A result as CycloneDX's ML-BOM: its files, the original it was made of, and its figures. */
export function describeModelBom(job: AttestedJob, builder: string): z.infer<typeof modelBom> {
  const { id, model, artifacts, finishedAt } = job;
  const [file] = artifacts.filter(({ kind }) => kind === "model");
  if (file === undefined) throw new TypeError("A result has no model");
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: finishedAt,
      tools: { components: [{ type: "application", name: "Model Optimization Service" }] },
      component: {
        type: "machine-learning-model",
        "bom-ref": id,
        name: model.name,
        version: id,
        hashes: sha256Of(file.sha256),
        externalReferences: [{ type: "build-meta", url: `${builder}/v1/jobs/${id}` }],
        pedigree: {
          ancestors: [
            {
              type: "machine-learning-model",
              name: model.name,
              hashes: sha256Of(model.actualSha256),
            },
          ],
          notes: describeWork(job),
        },
        modelCard: {
          quantitativeAnalysis: { performanceMetrics: listMetrics(job) },
        },
        properties: listProperties(job),
      },
    },
    components: artifacts.map(({ name, sha256 }) => ({
      type: "file",
      "bom-ref": `${id}/${name}`,
      name,
      hashes: sha256Of(sha256),
    })),
    dependencies: [{ ref: id, dependsOn: artifacts.map(({ name }) => `${id}/${name}`) }],
  };
}

function sha256Of(content: string) {
  return [{ alg: "SHA-256", content }];
}

function describeWork({ recipe, target }: AttestedJob): string {
  return `Compressed by the scheme ${recipe.scheme} for the target ${target}`;
}

interface Metric {
  readonly type: string;
  readonly value: string;
  readonly confidenceInterval?: { readonly lowerBound: string; readonly upperBound: string };
}

function listMetrics({ telemetry: { size, accuracy, latency } }: AttestedJob): Metric[] {
  const metrics: Metric[] = [];
  if (size) metrics.push({ type: "size relative to the original", value: String(size.ratio) });
  if (accuracy) {
    metrics.push({ type: "SQNR, dB", value: String(accuracy.sqnrDb) });
    metrics.push({ type: "cosine similarity", value: String(accuracy.cosine) });
  }
  if (latency) metrics.push(describeLatency(latency));
  return metrics;
}

function describeLatency({
  ratio,
  ratioLow = ratio,
  ratioHigh = ratio,
}: NonNullable<AttestedJob["telemetry"]["latency"]>): Metric {
  return {
    type: "latency relative to the original",
    value: String(ratio),
    confidenceInterval: { lowerBound: String(ratioLow), upperBound: String(ratioHigh) },
  };
}

/** Gates, and what the figures were measured on. */
function listProperties({ gates, telemetry: { device, accuracy }, baseline }: AttestedJob) {
  const facts = [
    ["recipe.device", device && `${device.name}, ${device.threads} threads, ${device.runtime}`],
    ["accuracy.samples", accuracy && `${accuracy.samples} ${accuracy.data}`],
    ...gates.map((gate) => [
      `gate.${gate.gate}`,
      `${gate.passed ? "passed" : gate.level}: ${describeGate(gate, { against: baseline?.branch })}`,
    ]),
  ] as const;
  return facts.flatMap(([name, value]) =>
    value === undefined ? [] : [{ name: `model-optimization:${name}`, value }],
  );
}
