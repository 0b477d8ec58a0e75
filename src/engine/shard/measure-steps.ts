import { create } from "@bufbuild/protobuf";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { runOnGenerated } from "../evaluate/open-samples.ts";
import { percentile } from "../evaluate/percentile.ts";
import { nodeWith } from "../onnx/node-attributes.ts";
import { GraphProtoSchema, ModelProtoSchema } from "../onnx/onnx_pb.js";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/payload.ts";
import type { PipelineGraph } from "./pipeline-graph.ts";
import { withProbe, type ProbeOptions } from "./with-probe.ts";

/** Timed runs, after a first one that is not counted. */
const runs = 5;

const profile = z.array(z.object({ name: z.string(), dur: z.number() }));

/**
 * Measures each step's time in ONNX Runtime on a generated sample with graph optimizations off, nanoseconds: the median of 5 runs.
 * The runtime puts a function's nodes in place of its call, so that the time of a call is that of the nodes that its outputs come from.
 *
 * @throws ServiceError evaluation_failed if the model cannot be run.
 */
export async function measureSteps(
  model: OnnxModel,
  { graph, steps, constants }: PipelineGraph,
  options: ProbeOptions,
): Promise<number[]> {
  const renamed = steps.map(({ node }, index) => Object.assign(nodeWith(node, {}), { name: stepName(index) }));
  const node: NodeProto[] = [...constants.values(), ...renamed];
  const probe = {
    ...model,
    proto: Object.assign(create(ModelProtoSchema), model.proto, {
      graph: Object.assign(create(GraphProtoSchema), graph, { node }),
    }),
  };
  const events = await withProbe(probe, options, async (session, folder) => {
    const outputs = session.signature.outputs.flatMap(({ name, isTensor }) => (isTensor ? [name] : []));
    await runOnGenerated(session, { outputs, signal: options.signal });
    for (let run = 0; run < runs; run++) await session.time();
    await session.endProfile();
    const file = (await readdir(folder)).find((name) => name.startsWith("profile"));
    return profile.parse(JSON.parse(await readFile(path.join(folder, file ?? "profile"), "utf8")));
  });
  const durations = new Map<string, number[]>();
  for (const { name, dur } of events) {
    const [step] = /^step-\d+(?=_kernel_time$)/.exec(name) ?? [];
    if (step === undefined) continue;
    durations.set(step, [...(durations.get(step) ?? []), dur]);
  }
  return steps.map((_, index) => {
    const times = Float64Array.from(durations.get(stepName(index))?.slice(-runs) ?? [0]);
    return Math.round(percentile(times.sort(), 0.5) * 1000);
  });
}

function stepName(index: number): string {
  return `step-${index}`;
}
