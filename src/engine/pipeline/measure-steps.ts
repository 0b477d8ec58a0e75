import { create } from "@bufbuild/protobuf";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { at } from "../onnx/at.ts";
import type { ModelSession } from "../runtime/model-session.ts";
import { runOnGeneratedSample } from "../samples/generate-sample.ts";
import { percentile } from "../latency/percentile.ts";
import { nodeWith } from "../onnx/node-attributes.ts";
import { GraphProtoSchema, ModelProtoSchema } from "../onnx/onnx_pb.js";
import type { NodeProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { CalledFunctions } from "./called-functions.ts";
import type { PipelineGraph } from "./pipeline-graph.ts";
import { withProbeSession, type ProbeOptions } from "./with-probe-session.ts";

/** Timed runs, after a first one for warm-up. */
const runs = 5;

const profileEvents = z.array(z.object({ name: z.string(), dur: z.number() }));

/** Durations in microseconds, as the runtime's profile has them. */
interface StepProfile {
  /** Of each timed run, by the step's name. */
  readonly durations: ReadonlyMap<string, readonly number[]>;
  /** Of the nodes of all functions in a run. */
  readonly inlinedTime: number;
}

/**
 * Measures each step's time in ONNX Runtime on a generated sample with graph optimizations off,
 * nanoseconds: the median of 5 runs. The runtime replaces calls of the model's functions by the
 * functions' nodes without saying which call a node is from, so the calls share that time by the
 * number of nodes that they expand to.
 * @throws ServiceError evaluation_failed if the model cannot be run
 */
export async function measureSteps(
  model: OnnxModel,
  graph: PipelineGraph,
  options: ProbeOptions,
): Promise<number[]> {
  const probe = nameSteps(model, graph);
  const { durations, inlinedTime } = await withProbeSession(probe, options, (session, folder) =>
    profileRuns(session, folder, options.signal),
  );
  const functions = new CalledFunctions(model.proto);
  const inlinedNodes = graph.steps.map((step) => countInlinedNodes(functions, step.node));
  const allInlinedNodes = inlinedNodes.reduce((total, count) => total + count, 0);
  return graph.steps.map((_, index) => {
    const times = Float64Array.from(durations.get(stepName(index))?.slice(-runs) ?? [0]);
    const inlined =
      allInlinedNodes === 0 ? 0 : (inlinedTime * at(inlinedNodes, index)) / allInlinedNodes;
    return Math.round((percentile(times.sort(), 0.5) + inlined) * 1000);
  });
}

/** A copy of the model in which the steps' nodes have names that distinguish them in a profile. */
function nameSteps(model: OnnxModel, { graph, steps, constants }: PipelineGraph): OnnxModel {
  const named = steps.map(({ node }, index) =>
    Object.assign(nodeWith(node, {}), { name: stepName(index) }),
  );
  const changed = Object.assign(create(GraphProtoSchema), graph, {
    node: [...constants.values(), ...named],
  });
  const proto = Object.assign(create(ModelProtoSchema), model.proto, { graph: changed });
  return { ...model, proto };
}

async function profileRuns(
  session: ModelSession,
  folder: string,
  signal: AbortSignal,
): Promise<StepProfile> {
  const outputs = session.signature.outputs.flatMap(({ name, isTensor }) =>
    isTensor ? [name] : [],
  );
  await runOnGeneratedSample(session, { outputs, signal });
  for (let run = 0; run < runs; run++) await session.timeRun();
  await session.endProfile();
  const file = (await readdir(folder)).find((name) => name.startsWith("profile"));
  const text = await readFile(path.join(folder, file ?? "profile"), "utf8");
  return summarizeProfile(profileEvents.parse(JSON.parse(text)));
}

function summarizeProfile(events: z.infer<typeof profileEvents>): StepProfile {
  const durations = new Map<string, number[]>();
  let inlinedTime = 0;
  for (const { name, dur } of events) {
    const [step] = /^step-\d+(?=_kernel_time$)/.exec(name) ?? [];
    if (step !== undefined) durations.set(step, [...(durations.get(step) ?? []), dur]);
    else if (name.startsWith("_inlfunc_")) inlinedTime += dur / (runs + 1);
  }
  return { durations, inlinedTime };
}

function countInlinedNodes(functions: CalledFunctions, node: NodeProto): number {
  return [...functions.find([node])].reduce((total, called) => total + called.node.length, 0);
}

function stepName(index: number): string {
  return `step-${index}`;
}
