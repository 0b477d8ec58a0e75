import { findUploadHash } from "../contract/models/model-source.ts";
import type { NewJob } from "./insert-jobs.ts";

/** Hashes of the uploads that jobs name as models or data, each once. */
export function listNamedUploads(jobs: readonly Pick<NewJob, "model" | "recipe">[]): string[] {
  const sources = jobs.flatMap(({ model, recipe }) => [model.source, recipe.evaluation.data ?? ""]);
  return [...new Set(sources.flatMap((source) => findUploadHash(source) ?? []))];
}
