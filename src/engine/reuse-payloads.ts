import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Placement } from "./onnx/model-layout.ts";
import type { Payload } from "./onnx/onnx-model.ts";
import { payloadField } from "./onnx/payload.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import { outputPayloads } from "./quantize/tasks/task-outputs.ts";
import type { WeightTask } from "./quantize/tasks/weight-task.ts";

/** The files of a plan that was carried out. */
export interface WrittenPlan {
  readonly plan: CompressionPlan;
  readonly directory: string;
}

/**
 * Makes a plan take what another plan of the same model and recipe has written.
 * @returns the tasks whose results are not there
 */
export function reusePayloads(
  plan: CompressionPlan,
  { plan: earlier, directory }: WrittenPlan,
): WeightTask[] {
  const locate = (payload: number): Payload | undefined =>
    locatePayload(earlier, payload, directory);
  for (const payload of plan.layout.placements.keys()) {
    const known = plan.model.payloads[payload];
    const written = known?.kind === "file" ? locate(payload) : undefined;
    if (written !== undefined) plan.model.payloads[payload] = written;
  }
  const earlierTasks = new Map(earlier.tasks.map((task) => [task.weight, task]));
  return plan.tasks.filter((task) => {
    const same = earlierTasks.get(task.weight);
    if (same === undefined || !isSameWork(task, same)) return true;
    const outputs = outputPayloads(same).map(locate);
    if (outputs.includes(undefined)) return true;
    for (const [index, payload] of outputPayloads(task).entries()) {
      const output = outputs[index];
      if (output !== undefined) plan.model.payloads[payload] = output;
    }
    return false;
  });
}

/** Whether two tasks for one weight compute the same: its format can depend on other weights. */
function isSameWork(task: WeightTask, other: WeightTask): boolean {
  const [a, b] = [task, other].map((each) => ({ ...each, source: null, outputs: null }));
  return isDeepStrictEqual(a, b);
}

function locatePayload(
  { model, layout }: CompressionPlan,
  payload: number,
  directory: string,
): Payload | undefined {
  const known = model.payloads[payload];
  const [place]: readonly Placement[] = layout.placements.get(payload) ?? [];
  if (known === undefined || place === undefined) return undefined;
  const field = known.kind === "file" ? known.field : payloadField.raw;
  const file = path.join(directory, place.file);
  return { kind: "file", path: file, offset: place.offset, length: known.length, field };
}
