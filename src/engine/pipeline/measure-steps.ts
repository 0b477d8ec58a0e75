import { create } from "@bufbuild/protobuf";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { runOnGeneratedSample } from "../evaluate/open-samples.ts";
import { percentile } from "../evaluate/percentile.ts";
import { nodeWith } from "../onnx/node-attributes.ts";
import { GraphProtoSchema, ModelProtoSchema } from "../onnx/onnx_pb.js";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { calledFunctions, type PipelineGraph } from "./pipeline-graph.ts";
import { withProbeSession, type ProbeOptions } from "./with-probe-session.ts";

/** Timed runs, after a first one that is not counted. */
const runs = 5;

const profileEvents = z.array(z.object({ name: z.string(), dur: z.number() }));

/**
 * Measures each step's time in ONNX Runtime on a generated sample with graph optimizations off, nanoseconds: the median of 5 runs.
 * The runtime puts the nodes of the model's functions in place of their calls without saying which call a node is from, so that the
 * calls share that time by the number of nodes that they stand for.
 *
 * @throws ServiceError evaluation_failed if the model cannot be run.
 */
export async function measureSteps(
  model: OnnxModel,
  { graph, steps, constants }: PipelineGraph,
  options: ProbeOptions,
): Promise<number[]> {
  const renamed = steps.map(({ node }, index) =>
    Object.assign(nodeWith(node, {}), { name: stepName(index) }),
  );
  const node: NodeProto[] = [...constants.values(), ...renamed];
  const probe = {
    ...model,
    proto: Object.assign(create(ModelProtoSchema), model.proto, {
      graph: Object.assign(create(GraphProtoSchema), graph, { node }),
    }),
  };
  const events = await withProbeSession(probe, options, async (session, folder) => {
    const outputs = session.signature.outputs.flatMap(({ name, isTensor }) =>
      isTensor ? [name] : [],
    );
    await runOnGeneratedSample(session, { outputs, signal: options.signal });
    for (let run = 0; run < runs; run++) await session.timeRun();
    await session.endProfile();
    const file = (await readdir(folder)).find((name) => name.startsWith("profile"));
    return profileEvents.parse(
      JSON.parse(await readFile(path.join(folder, file ?? "profile"), "utf8")),
    );
  });
  const durations = new Map<string, number[]>();
  let inlinedTime = 0;
  for (const { name, dur } of events) {
    const [step] = /^step-\d+(?=_kernel_time$)/.exec(name) ?? [];
    if (step !== undefined) durations.set(step, [...(durations.get(step) ?? []), dur]);
    else if (name.startsWith("_inlfunc_")) inlinedTime += dur / (runs + 1);
  }
  const inlinedNodes = steps.map((step) => countInlinedNodes(model, step.node));
  const allInlinedNodes = inlinedNodes.reduce((total, count) => total + count, 0);
  return steps.map((_, index) => {
    const times = Float64Array.from(durations.get(stepName(index))?.slice(-runs) ?? [0]);
    const inlined =
      allInlinedNodes === 0 ? 0 : (inlinedTime * (inlinedNodes[index] ?? 0)) / allInlinedNodes;
    return Math.round((percentile(times.sort(), 0.5) + inlined) * 1000);
  });
}

function countInlinedNodes({ proto }: OnnxModel, node: NodeProto): number {
  return [...calledFunctions(proto, [node])].reduce(
    (total, called) => total + called.node.length,
    0,
  );
}

function stepName(index: number): string {
  return `step-${index}`;
}
