import { z } from "zod";
import { dnsLabel, quantity } from "../text/kubernetes-names.ts";
import { instructionSets } from "./latency.ts";
import { partialRecipe, presetName } from "./recipe.ts";

export const targetName = dnsLabel.describe("Name of a target.");

/** A named hardware profile. */
export const target = z
  .strictObject({
    name: targetName,
    description: z.string().max(500).describe("For people: the hardware, and what is done for it."),
    executionProvider: z
      .enum(["cpu", "cuda"])
      .describe("ONNX Runtime execution provider that evaluates models on the target."),
    operators: z
      .enum(["standard", "contrib"])
      .describe(
        "Whether models for the target may use ONNX Runtime's own operators besides the " +
          "standard ones.",
      ),
    instructionSets: z
      .array(z.enum(instructionSets))
      .max(instructionSets.length)
      .optional()
      .describe(
        "Instruction sets of the target's processors. Jobs on machines that lack one of them " +
          "time nothing, and choose by this list; without it, every machine is the target.",
      ),
    recipe: partialRecipe.describe("Default recipe of jobs for the target."),
    presets: z
      .record(presetName, partialRecipe)
      .default({})
      .describe("Named recipes that a request may ask for."),
    gpu: z
      .strictObject({
        resource: z.string().max(253).describe("Extended resource, for instance `nvidia.com/gpu`."),
        count: z.int().min(1).max(64).describe("Units of it that each worker pod gets."),
      })
      .optional()
      .describe("What a worker pod requests in a cluster; without meaning on one machine."),
    resources: z
      .strictObject({
        cpu: quantity.optional().describe("Processors, such as `4` or `500m`."),
        memory: quantity.optional().describe("Memory, such as `16Gi`: also the limit."),
        ephemeralStorage: quantity
          .optional()
          .describe("Disk of the node; without it as much as `scratch`."),
        limits: z
          .strictObject({
            cpu: quantity.optional(),
            memory: quantity.optional(),
            ephemeralStorage: quantity.optional(),
          })
          .optional()
          .describe("What it may use at most; without it memory is limited to its request."),
      })
      .optional()
      .describe(
        "What a worker pod requests. By default it is 100m of CPU, and of memory and disk what the " +
          "last job of the same model, target and recipe took, or its dry run forecast: no less " +
          "than 256Mi, and no more than the limits.",
      ),
    scratch: quantity
      .optional()
      .describe(
        "Largest scratch volume of a worker pod, for the model and the result; without it " +
          "unlimited.",
      ),
    nodeSelector: z
      .record(z.string().max(317), z.string().max(63))
      .optional()
      .describe("Labels of the nodes that worker pods run on."),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string().max(317).optional(),
          operator: z.enum(["Exists", "Equal"]).optional(),
          value: z.string().max(63).optional(),
          effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
        }),
      )
      .max(16)
      .optional()
      .describe("Taints of nodes that worker pods tolerate."),
    runtimeClassName: z
      .string()
      .max(253)
      .optional()
      .describe("Runtime class of worker pods, such as `nvidia`."),
    priorityClassName: z.string().max(253).optional().describe("Priority class of worker pods."),
    image: z
      .string()
      .max(500)
      .optional()
      .describe("Worker image; without it the installation's own."),
  })
  .meta({ id: "Target" });
export type Target = z.infer<typeof target>;

const dotProductSets: readonly string[] = ["avx512_vnni", "avx_vnni", "amx_int8", "asimddp"];

/** Whether a target's processors are known to have no dot products of 8-bit integers. */
export function lacksDotProducts({ instructionSets: declared }: Target): boolean {
  return declared !== undefined && !includesDotProducts(declared);
}

/** Whether processors with these instruction sets have dot products of 8-bit integers. */
export function includesDotProducts(instructionSets: readonly string[]): boolean {
  return instructionSets.some((name) => dotProductSets.includes(name));
}

/**
 * Weights of a decoder that cost most in 4 bits, for each byte that 8 bits take more: measured on
 * SmolLM2. The names of odd layers end in an odd digit; a head may be the embedding too.
 */
const sensitiveWeights = [
  "*lm_head*",
  "*layers.0.*",
  "*qkv_proj*",
  ...[1, 3, 5, 7, 9].map((digit) => `*${digit}.mlp.down_proj*`),
];

/** The targets of a service whose administrator has not configured any. */
export const builtinTargets: readonly Target[] = [
  {
    name: "cpu",
    description:
      "Any CPU runtime of the ONNX standard. Weights in 8 bits for each output channel, " +
      "arithmetic in float: about a quarter of the size, as fast as the original or faster.",
    executionProvider: "cpu",
    operators: "standard",
    recipe: { scheme: "int8-weight" },
    presets: {},
  },
  {
    name: "cpu-int8",
    description:
      "x86 CPU servers running ONNX Runtime. Integer arithmetic for MatMul, Gemm and LSTM where " +
      "it is faster, as in large transformers; other weights, such as those of convolutions, in 8 " +
      "bits, as fast as the original or faster.",
    executionProvider: "cpu",
    operators: "contrib",
    recipe: {
      scheme: "int8-dynamic",
      reduceRange: true,
      operators: "contrib",
      fallback: "int8-weight",
    },
    presets: { vnni: { scheme: "int8-dynamic", reduceRange: false, fallback: "int8-weight" } },
  },
  {
    name: "cpu-llm",
    description:
      "Language models on CPUs, for ONNX Runtime and ONNX Runtime GenAI. Weights in blocks of 4 " +
      "bits; those that cost most accuracy in 4 bits, such as the head's, in 8 bits. What a " +
      "checkpoint has in 4 bits with offsets stays as it is.",
    executionProvider: "cpu",
    operators: "contrib",
    recipe: {
      scheme: "int4-weight",
      granularity: "block",
      operators: "contrib",
      offsets: "source",
      overrides: sensitiveWeights.map((match) => ({
        match,
        scheme: "int8-weight",
        blockSize: 64,
        offsets: "source",
      })),
    },
    presets: {
      smallest: { overrides: [{ match: "*lm_head*", scheme: "int8-weight" }] },
      int8: { scheme: "int8-weight", offsets: "none", overrides: [] },
    },
  },
];
