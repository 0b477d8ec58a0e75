import { builtinTargets, type Target } from "../../src/contract/jobs/target.ts";
import { timeFor } from "../support/brief-targets.ts";
import { imageNames } from "../support/cluster/image-builds.ts";

const plain: Target = {
  name: "gpu",
  description: "A node's GPUs, which have nothing to do here.",
  executionProvider: "cpu",
  operators: "standard",
  recipe: { scheme: "int8-weight" },
  presets: {},
  // Jobs that time their models while something else happens leave the processors to that.
  resources: { limits: { cpu: "400m" } },
};

/** Hardware profiles of the installation: usable ones, and some whose jobs cannot run. */
export const targets: readonly Target[] = timeFor(0.1, [
  ...builtinTargets,
  { ...plain, gpu: { resource: "nvidia.com/gpu", count: 1 }, scratch: "1Gi" },
  { ...plain, name: "many-gpus", gpu: { resource: "nvidia.com/gpu", count: 64 } },
  // The compression takes up to 130 MiB, and to run the model 170 MiB more would have to be left.
  { ...plain, name: "little-memory", resources: { memory: "192Mi" } },
  { ...plain, name: "least-memory", resources: { memory: "48Mi" } },
  { ...plain, name: "no-image", image: "registry.invalid/worker:1" },
  { ...plain, name: "wrong-image", image: imageNames.service },
]);
