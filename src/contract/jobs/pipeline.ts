import { z } from "zod";

export const balance = z
  .enum(["bytes", "flops", "time"])
  .describe(
    "What the stages of a pipeline are balanced by. `bytes`: the weights of a stage. " +
      "`flops`: operations on a generated sample. `time`: nanoseconds that ONNX Runtime's CPU " +
      "provider takes for a generated sample, graph optimizations off.",
  );
export type Balance = z.infer<typeof balance>;

export const maxPipelineStages = 64;

const pipelineTensor = z.object({
  name: z.string(),
  type: z.string(),
  shape: z
    .array(z.union([z.int(), z.string()]))
    .describe("Open dimensions are their names, which may be empty."),
});

/**
 * `pipeline.json`: stages that are run one after the other and together compute what the model
 * does, each an ONNX model of its own.
 */
export const pipelineManifest = z
  .object({
    version: z.literal(1),
    balance,
    stages: z.array(
      z.object({
        model: z.string().describe("ONNX file of the stage."),
        files: z
          .array(z.object({ name: z.string(), bytes: z.int() }))
          .describe("Every file that the stage needs."),
        parameterBytes: z
          .int()
          .describe("Bytes of the weights and constants of the stage, original size."),
        load: z.number().describe("What is balanced, in its own unit."),
        inputs: z
          .array(
            z.object({
              name: z.string(),
              from: z
                .int()
                .min(0)
                .describe(
                  "Number of the stage that computes the tensor, from 1; 0 for the caller.",
                ),
            }),
          )
          .describe(
            "Tensors to feed. A tensor of an earlier stage is fed unchanged past the stages " +
              "between.",
          ),
        outputs: z
          .array(z.string())
          .describe("Tensors that the stage computes, for later stages and for the caller."),
      }),
    ),
    cuts: z
      .array(
        z.object({
          bytes: z.int().describe("Bytes that cross the cut on a generated sample."),
          tensors: z
            .array(pipelineTensor)
            .describe("Tensors computed before the cut and used after it."),
        }),
      )
      .describe("What crosses from each stage to the next one."),
    outputs: z
      .array(
        z.object({
          name: z.string(),
          from: z.int().min(1).describe("Number of the stage that computes it."),
        }),
      )
      .describe("The model's outputs, in its order."),
  })
  .meta({ id: "PipelineManifest" });
export type PipelineManifest = z.infer<typeof pipelineManifest>;
