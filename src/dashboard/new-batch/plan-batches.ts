import { batchName, type BatchRequest, batchRequest } from "../../contract/batches/batch.ts";
import { gateLimits } from "../../contract/jobs/gate.ts";
import type { JobRequest } from "../../contract/jobs/job.ts";
import type { PartialRecipe } from "../../contract/jobs/recipe.ts";
import { type ModelReference, modelReference } from "../../contract/models/model.ts";
import { type FieldMessages, invalidFields } from "../shared/field-errors.ts";

export interface ChosenModel {
  readonly name: string;
  readonly source: string;
}

interface RecipeOption {
  readonly hint: string;
  /** Undefined for each target's own. */
  readonly recipe?: PartialRecipe;
}

/** Recipes to try, by their names. */
export const recipeChoices: Readonly<Record<string, RecipeOption>> = {
  target: { hint: "What each target has by default." },
  "int8-weight": {
    hint: "Weights in 8 bits, a scale for each channel; arithmetic in floating point.",
    recipe: { scheme: "int8-weight", granularity: "channel" },
  },
  "int4-weight": {
    hint: "Weights of products in 4 bits, in blocks, others in 8: mostly smaller and less accurate than 8 bits; predict the sizes to see.",
    recipe: { scheme: "int4-weight", granularity: "block", fallback: "int8-weight" },
  },
  "int8-dynamic": {
    hint: "Weights and activations in 8 bits: often the fastest on servers.",
    recipe: { scheme: "int8-dynamic", granularity: "channel", fallback: "int8-weight" },
  },
  fp16: { hint: "Half precision: half the size, hardly an error.", recipe: { scheme: "fp16" } },
};

export interface BatchPlan {
  readonly models: readonly ChosenModel[];
  readonly targets: readonly string[];
  /** Names of recipes. */
  readonly recipes: readonly string[];
  readonly name: string;
  /** Limits as they were typed; empty for none. */
  readonly maxSizeRatio: string;
  readonly minSqnrDb: string;
}

/** Jobs call it so, unless no model can have the name. */
function nameModel({ name, source }: ChosenModel): ModelReference {
  return { source, name: modelReference.shape.name.safeParse(name).data };
}

export function countJobs({ models, targets, recipes }: BatchPlan): number {
  return models.length * targets.length * recipes.length;
}

interface PlannedBatches {
  readonly requests: readonly BatchRequest[];
  /** What is wrong with the fields; empty where nothing is. */
  readonly messages: FieldMessages;
}

/** A batch for each recipe, since all jobs of a batch have one. */
export function planBatches(plan: BatchPlan): PlannedBatches {
  const { targets, recipes } = plan;
  const models = plan.models.map(nameModel);
  const gates = readGates(plan);
  const parsed = recipes.map((recipe) => {
    const named = batchName({ name: plan.name || undefined, models, targets: [...targets] });
    const name = recipes.length === 1 ? named : `${named}, ${recipe}`;
    const recipeOf = recipeChoices[recipe]?.recipe;
    return batchRequest.safeParse({ name, models, targets, gates: gates.data, recipe: recipeOf });
  });
  const wrong = [...parsed, gates].flatMap(({ error }) => (error ? [invalidFields(error)] : []));
  return {
    requests: parsed.flatMap(({ data }) => data ?? []),
    messages: Object.assign({}, ...wrong) as FieldMessages,
  };
}

interface PlannedJob {
  /** Its model, target and recipe. */
  readonly what: string;
  readonly request: Omit<JobRequest, "dryRun">;
}

/** The jobs of the batches, one by one, without the gates. */
export function listPlannedJobs({ models, targets, recipes }: BatchPlan): PlannedJob[] {
  return models.flatMap((model) =>
    targets.flatMap((target) =>
      recipes.map((recipe) => ({
        what: `${model.name} · ${target} · ${recipe}`,
        request: { model: nameModel(model), target, recipe: recipeChoices[recipe]?.recipe },
      })),
    ),
  );
}

function readGates({ maxSizeRatio, minSqnrDb }: BatchPlan) {
  const typed = Object.entries({ maxSizeRatio, minSqnrDb }).filter(([, text]) => text !== "");
  const limits = Object.fromEntries(typed.map(([gate, text]) => [gate, Number(text)]));
  return gateLimits.optional().safeParse(typed.length === 0 ? undefined : limits);
}
