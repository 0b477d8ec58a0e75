import type { ServiceClient } from "./service-client.ts";
import type { ModelReference } from "../contract/models/model.ts";
import type { NamedModel } from "./find-models.ts";
import { uploadFile, type UploadOptions } from "./upload-file.ts";

/**
 * Uploads the files that the service lacks, and gives all models as a batch references them.
 * @throws InputError for a model that is larger than the service allows
 */
export async function uploadModels(
  models: readonly NamedModel[],
  client: ServiceClient,
  options: UploadOptions,
): Promise<ModelReference[]> {
  const references: ModelReference[] = [];
  for (const model of models) {
    const source = "source" in model ? model.source : await uploadFile(client, model, options);
    references.push({ name: model.name, source, sha256: model.sha256 });
  }
  return references;
}
