import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import type { ModelPair } from "../runtime/model-session.ts";

const bytes = z.coerce.number().default(0);

const profile = z.array(
  z.object({
    cat: z.string(),
    args: z
      .object({
        node_index: z.string().default(""),
        op_name: z.string().default(""),
        provider: z.string().optional(),
        activation_size: bytes,
        parameter_size: bytes,
        output_size: bytes,
      })
      .optional(),
  }),
);

/**
 * Most bytes of a node's inputs and outputs that are taken for shapes: the runtime computes those on
 * the CPU on purpose, since a copy to a GPU would take longer.
 */
const shapeBytes = 4096;

/** Where the nodes of an optimized graph ran, but for those that compute shapes. */
interface NodePlacement {
  readonly nodes: number;
  readonly nodesOnCpu: number;
  /** Operators of the nodes on the CPU. */
  readonly operatorsOnCpu: readonly string[];
}

/** Reads the runtime's profile in a folder that has no other one. */
export async function countNodesOnCpu(folder: string): Promise<NodePlacement> {
  const file = (await readdir(folder)).find((name) => name.endsWith(".json")) ?? "profile";
  const events = profile.parse(JSON.parse(await readFile(path.join(folder, file), "utf8")));
  const nodes = new Map<string, { operator: string; provider: string }>();
  for (const { cat, args } of events) {
    if (cat !== "Node" || args?.provider === undefined) continue;
    const { node_index: index, op_name: operator, provider } = args;
    const size = args.activation_size + args.parameter_size + args.output_size;
    if (size > shapeBytes) nodes.set(`${index} ${operator}`, { operator, provider });
  }
  const onCpu = [...nodes.values()].filter(({ provider }) => provider.startsWith("CPU"));
  const operatorsOnCpu = [...new Set(onCpu.map(({ operator }) => operator))].toSorted();
  return { nodes: nodes.size, nodesOnCpu: onCpu.length, operatorsOnCpu };
}

/** A warning for nodes that ran on the CPU though another execution provider was asked for. */
export function describeNodesOnCpu(
  which: keyof ModelPair,
  { nodes, nodesOnCpu, operatorsOnCpu }: NodePlacement,
): EvaluationWarning[] {
  if (nodesOnCpu === 0) return [];
  const operators = operatorsOnCpu.slice(0, 10).join(", ");
  const message = `${nodesOnCpu} of ${nodes} nodes of the ${which} ran on the CPU: ${operators}`;
  return [{ code: "nodes_on_cpu", message }];
}
